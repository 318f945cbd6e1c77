// SPDX-License-Identifier: BSD-3-Clause
/* Kernels for 64-bit ARM with NEON, which all of them have. */
#if defined(__aarch64__)
#include <arm_neon.h>

#define KERNELS hoop_kernels_neon
#define TARGET
#define VECTOR 16
#define LESSER_float(a, b) \
    ((floats)vbslq_f32(vcltq_f32((float32x4_t)(a), (float32x4_t)(b)), (float32x4_t)(a), (float32x4_t)(b)))
#define LESSER_double(a, b) \
    ((vector_F64)vbslq_f64(vcltq_f64((float64x2_t)(a), (float64x2_t)(b)), (float64x2_t)(a), (float64x2_t)(b)))
#define GREATER_float(a, b) \
    ((floats)vbslq_f32(vcgtq_f32((float32x4_t)(a), (float32x4_t)(b)), (float32x4_t)(a), (float32x4_t)(b)))
#define GREATER_double(a, b) \
    ((vector_F64)vbslq_f64(vcgtq_f64((float64x2_t)(a), (float64x2_t)(b)), (float64x2_t)(a), (float64x2_t)(b)))
#define TO_WORDS(from)          ((words)vmovl_u16((uint16x4_t)(from)))
#define TO_HALVES(from)         ((halves)vmovn_u32((uint32x4_t)(from)))
#define HALF_WIDEN(from)        ((floats)vcvt_f32_f16((float16x4_t)(from)))
#define HALF_NARROW(from)       ((halves)vcvt_f16_f32((float32x4_t)(from)))
#define QUARTERS_TO_WORDS(from) ((words)bytes_to_words((uint32_t)(from)))
#define WORDS_TO_QUARTERS(from) ((quarters)words_to_bytes((uint32x4_t)(from)))

static inline uint32x4_t bytes_to_words(uint32_t bytes)
{
    return vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(bytes))));
}

static inline uint32_t words_to_bytes(uint32x4_t words)
{
    const uint16x4_t halves = vmovn_u32(words);

    return vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(halves, halves))), 0);
}

#include "dtype/kernels.inc"
#else
typedef int hoop_kernels_neon_are_for_aarch64; /* C wants at least one declaration */
#endif
