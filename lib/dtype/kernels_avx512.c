// SPDX-License-Identifier: BSD-3-Clause
/* Kernels for x86-64 with AVX-512 F, BW, DQ and VL. */
#if defined(__x86_64__)
#include <immintrin.h>

#define KERNELS                      hoop_kernels_avx512
#define TARGET                       __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define VECTOR                       64
#define LESSER_float(a, b)           _mm512_min_ps(a, b)
#define LESSER_double(a, b)          _mm512_min_pd(a, b)
#define GREATER_float(a, b)          _mm512_max_ps(a, b)
#define GREATER_double(a, b)         _mm512_max_pd(a, b)
#define TO_WORDS(from)               ((words)_mm512_cvtepu16_epi32((__m256i)(from)))
#define TO_HALVES(from)              ((halves)_mm512_cvtepi32_epi16((__m512i)(from)))
#define HALF_WIDEN(from)             ((floats)_mm512_cvtph_ps((__m256i)(from)))
#define HALF_NARROW(from)            ((halves)_mm512_maskz_cvtps_ph(0xffff, (__m512)(from), _MM_FROUND_TO_NEAREST_INT))
#define QUARTERS_TO_WORDS(from)      ((words)_mm512_cvtepu8_epi32((__m128i)(from)))
#define WORDS_TO_QUARTERS(from)      ((quarters)_mm512_cvtepi32_epi8((__m512i)(from)))
#define PART_MASK(bytes)             (((__mmask64)1 << (bytes)) - 1)
#define PART_IN(buffer, from, bytes) _mm512_storeu_si512((buffer), _mm512_maskz_loadu_epi8(PART_MASK(bytes), (from)))
#define PART_OUT(to, buffer, bytes)  _mm512_mask_storeu_epi8((to), PART_MASK(bytes), _mm512_loadu_si512(buffer))
#define FIRST_OF_TWO(lanes)          ((eights)_mm512_unpacklo_epi64((__m512i)(lanes), (__m512i)(lanes)))
#define SECOND_OF_TWO(lanes)         ((eights)_mm512_unpackhi_epi64((__m512i)(lanes), (__m512i)(lanes)))
#include "dtype/kernels.inc"
#else
typedef int hoop_kernels_avx512_are_for_x86_64; /* C wants at least one declaration */
#endif
