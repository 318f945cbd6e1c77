// SPDX-License-Identifier: BSD-3-Clause
/* Copies that pass the caches by: what is written is not fetched first, and does not push out what is still needed. It pays
 * where a result is larger than the caches and is read by others, or later. */
#include "dtype/dtype.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#include <stdint.h>

enum { LINE = 64 };

void hoop_kernel_copy_past(void *to, const void *from, size_t bytes)
{
    unsigned char *target = to;
    const unsigned char *source = from;
    const size_t head = (size_t)(-(uintptr_t)target % LINE), lead = head < bytes ? head : bytes;

    hoop_kernel_copy(target, source, lead);
    target += lead;
    source += lead;
    bytes -= lead;
    for (; bytes >= LINE; bytes -= LINE, target += LINE, source += LINE) {
        const __m128i a = _mm_loadu_si128((const __m128i *)source), b = _mm_loadu_si128((const __m128i *)(source + 16)),
                      c = _mm_loadu_si128((const __m128i *)(source + 32)),
                      d = _mm_loadu_si128((const __m128i *)(source + 48));
        _mm_stream_si128((__m128i *)target, a);
        _mm_stream_si128((__m128i *)(target + 16), b);
        _mm_stream_si128((__m128i *)(target + 32), c);
        _mm_stream_si128((__m128i *)(target + 48), d);
    }
    hoop_kernel_copy(target, source, bytes);
}

void hoop_kernel_copies_done(void)
{
    _mm_sfence();
}
#else
void hoop_kernel_copy_past(void *to, const void *from, size_t bytes)
{
    hoop_kernel_copy(to, from, bytes);
}

void hoop_kernel_copies_done(void)
{
}
#endif
