// SPDX-License-Identifier: BSD-3-Clause
/* Kernels for what every machine of the architecture has. */
#define KERNELS hoop_kernels_plain
#define TARGET
#define VECTOR 16

#if defined(__SSE2__)
#include <emmintrin.h>

#define LESSER_float(a, b)      _mm_min_ps(a, b)
#define LESSER_double(a, b)     _mm_min_pd(a, b)
#define GREATER_float(a, b)     _mm_max_ps(a, b)
#define GREATER_double(a, b)    _mm_max_pd(a, b)
#define TO_WORDS(from)          ((words)_mm_unpacklo_epi16(_mm_set_epi64x(0, (int64_t)(from)), _mm_setzero_si128()))
#define TO_HALVES(from)         ((halves)_mm_cvtsi128_si64(pack_words((__m128i)(from))))
#define QUARTERS_TO_WORDS(from) ((words)bytes_to_words(_mm_cvtsi32_si128((int32_t)(from))))
#define WORDS_TO_QUARTERS(from) ((quarters)_mm_cvtsi128_si32(pack_to_bytes((__m128i)(from))))

static inline __m128i bytes_to_words(__m128i bytes)
{
    return _mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, _mm_setzero_si128()), _mm_setzero_si128());
}

static inline __m128i pack_to_bytes(__m128i words)
{
    const __m128i halves = _mm_packs_epi32(words, words);

    return _mm_packus_epi16(halves, halves);
}

/* There is only a saturating pack of signed words: make them signed first. */
static inline __m128i pack_words(__m128i words)
{
    const __m128i extended = _mm_srai_epi32(_mm_slli_epi32(words, 16), 16);

    return _mm_packs_epi32(extended, extended);
}
#endif

#include "dtype/kernels.inc"
