// SPDX-License-Identifier: BSD-3-Clause
/* Kernels for x86-64 with AVX2 and F16C. */
#if defined(__x86_64__)
#include <immintrin.h>

#define KERNELS                 hoop_kernels_avx2
#define TARGET                  __attribute__((target("avx2,f16c")))
#define VECTOR                  32
#define LESSER_float(a, b)      _mm256_min_ps(a, b)
#define LESSER_double(a, b)     _mm256_min_pd(a, b)
#define GREATER_float(a, b)     _mm256_max_ps(a, b)
#define GREATER_double(a, b)    _mm256_max_pd(a, b)
#define TO_WORDS(from)          ((words)_mm256_cvtepu16_epi32((__m128i)(from)))
#define TO_HALVES(from)         ((halves)pack_words((__m256i)(from)))
#define HALF_WIDEN(from)        ((floats)_mm256_cvtph_ps((__m128i)(from)))
#define HALF_NARROW(from)       ((halves)_mm256_cvtps_ph((__m256)(from), _MM_FROUND_TO_NEAREST_INT))
#define QUARTERS_TO_WORDS(from) ((words)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)(from))))
#define WORDS_TO_QUARTERS(from) ((quarters)_mm_cvtsi128_si64(pack_to_bytes((__m256i)(from))))
#define FIRST_OF_TWO(lanes)     ((eights)_mm256_unpacklo_epi64((__m256i)(lanes), (__m256i)(lanes)))
#define SECOND_OF_TWO(lanes)    ((eights)_mm256_unpackhi_epi64((__m256i)(lanes), (__m256i)(lanes)))

/* Each half of the register packs its own four words to its low eight bytes; bring them together. */
TARGET static inline __m128i pack_words(__m256i words)
{
    const __m256i packed = _mm256_shuffle_epi8(
        words, _mm256_broadcastsi128_si256(_mm_set_epi8(-1, -1, -1, -1, -1, -1, -1, -1, 13, 12, 9, 8, 5, 4, 1, 0)));

    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}

TARGET static inline __m128i pack_to_bytes(__m256i words)
{
    const __m128i halves = pack_words(words);

    return _mm_packus_epi16(halves, halves);
}

#include "dtype/kernels.inc"
#else
typedef int hoop_kernels_avx2_are_for_x86_64; /* C wants at least one declaration */
#endif
