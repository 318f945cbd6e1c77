// SPDX-License-Identifier: BSD-3-Clause
/* Copies that pass the caches by: what is written is not fetched first, and does not push out what is still needed. It pays
 * where a result is larger than the caches and is read by others, or later.
 *
 * A store of a whole line at once is worth it: four of a quarter each took more than twice the time.
 */
#include "dtype/dtype.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <stdatomic.h>
#include <stdint.h>

enum { LINE = 64 };

__attribute__((target("avx512f"))) static void lines_avx512(unsigned char *to, const unsigned char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LINE)
        _mm512_stream_si512((void *)(to + at), _mm512_loadu_si512((const void *)(from + at)));
}

__attribute__((target("avx2"))) static void lines_avx2(unsigned char *to, const unsigned char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LINE / 2)
        _mm256_stream_si256((__m256i *)(to + at), _mm256_loadu_si256((const __m256i *)(from + at)));
}

static void lines_plain(unsigned char *to, const unsigned char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LINE / 4)
        _mm_stream_si128((__m128i *)(to + at), _mm_loadu_si128((const __m128i *)(from + at)));
}

typedef void copy_lines(unsigned char *to, const unsigned char *from, size_t bytes);

/* By the level of the other kernels. */
static copy_lines *lines_copier(void)
{
    static copy_lines *const copiers[HOOP_KERNEL_LEVELS] = {
        [HOOP_KERNEL_PLAIN] = lines_plain, [HOOP_KERNEL_AVX2] = lines_avx2, [HOOP_KERNEL_AVX512] = lines_avx512};
    static _Atomic(copy_lines *) chosen;
    copy_lines *copier = atomic_load_explicit(&chosen, memory_order_relaxed);

    if (copier == NULL) {
        copier = copiers[hoop_kernel_level()];
        atomic_store_explicit(&chosen, copier, memory_order_relaxed);
    }
    return copier;
}

void hoop_kernel_copy_past(void *to, const void *from, size_t bytes)
{
    unsigned char *target = to;
    const unsigned char *source = from;
    const size_t head = (size_t)(-(uintptr_t)target % LINE), lead = head < bytes ? head : bytes;
    const size_t lines = (bytes - lead) / LINE * LINE;

    hoop_kernel_copy(target, source, lead);
    lines_copier()(target + lead, source + lead, lines);
    hoop_kernel_copy(target + lead + lines, source + lead + lines, bytes - lead - lines);
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
