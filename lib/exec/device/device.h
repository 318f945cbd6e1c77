// SPDX-License-Identifier: BSD-3-Clause
/* The few words in which device code is written, for two compilers.
 *
 * nvcc makes the code that is shipped from them; a C compiler makes functions of the same text, which the fake driver of
 * the tests (tests/fakecuda) runs with threads. Device code must stay inside what both take: C that is also C++, no
 * warp intrinsics, nothing that relies on the number of threads of a block or on blocks that are not resident.
 *
 * A device address is an integer (xg), and a pointer only inside XP. On the fake a context sees memory elsewhere than where its
 * addresses say, so what is reached past XP, or belongs to a peer that was not enabled, faults there.
 *
 *     XKERNEL(name, T) { ... }   a kernel; its one argument, a struct of fixed-width fields, is called `argument`
 *     XKERNEL_ROW(name, T)       its row in hoop_device_kernels, which the C build exports
 *     XDEVICE                    before a function that kernels call
 *     XP(T, address)             T * to a device address
 *     XTID XNT XBID XNB          thread and threads of the block, block and blocks of the grid
 *     XSHARED(T, name)           T *name: storage that the block's threads share, of undefined content. By all threads, in the
 *                                same order.
 *     XSYNC()                    barrier of the block
 *     XRAISE(flag, value), XRAISED(flag)   a shared uint32_t that any thread may set at any time; read after a barrier
 *     XPOLL(address)             in a loop that waits for a change at that address (counter or flag; 0: at any of several), after a look
 *                                that failed
 */
#ifndef HOOP_EXEC_DEVICE_DEVICE_H
#define HOOP_EXEC_DEVICE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

/* A device address. */
typedef uint64_t xg;

/* Sixteen bytes that move at once. */
struct x16 {
    uint64_t low, high;
};

#ifdef __CUDACC__

/* Blocks have 512 threads at most, so a thread may have 128 registers: with 64 the loops would spill. */
#define XKERNEL(name, T) extern "C" __global__ __launch_bounds__(512) void name(const __grid_constant__ T argument)
#define XDEVICE          static __device__
#define XP(T, address)   ((T *)(address))
#define XTID             threadIdx.x
#define XNT              blockDim.x
#define XBID             blockIdx.x
#define XNB              gridDim.x
#define XSHARED(T, name)        \
    __shared__ T name##_shared; \
    T *name = &name##_shared
#define XSYNC()             __syncthreads()
#define XRAISE(flag, value) (*(volatile uint32_t *)(flag) = (value))
#define XRAISED(flag)       (*(volatile uint32_t *)(flag))
#define XPOLL(address)      ((void)(address))

/* Load that sees whatever was written before the store whose value it finds, by any device and by the host. */
XDEVICE uint64_t x_ld_acq(xg address)
{
    uint64_t value;

    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

/* Store after all earlier ones of this thread, for readers with x_ld_acq. */
XDEVICE void x_st_rel(xg address, uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(address), "l"(value) : "memory");
}

/* Sixteen bytes from and to an address that is a multiple of 16; ordered by nothing but acquire and release. Loads pass by the
 * first cache, which is not kept in step with other devices; stores do anyway. */
XDEVICE struct x16 x_ld16(xg address)
{
    struct x16 value;

    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(value.low), "=l"(value.high) : "l"(address));
    return value;
}

XDEVICE void x_st16(xg address, struct x16 value)
{
    asm volatile("st.global.v2.u64 [%0], {%1, %2};" : : "l"(address), "l"(value.low), "l"(value.high) : "memory");
}

/* Two halves of eight bytes, which move at once each: x_flagged_*. */
#define x_ld_halves x_ld16

XDEVICE void x_st_halves(xg address, struct x16 value)
{
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};"
                 :
                 : "l"(address), "l"(value.low), "l"(value.high)
                 : "memory");
}

#else

/* What the fake driver sets for each of its device threads. */
struct hoop_device_emulation {
    int64_t delta; /* device address + delta = where the running context sees that memory */
    uint32_t thread, threads, block, blocks;
    void *(*shared)(size_t bytes); /* the next piece of the block's shared memory */
    void (*sync)(void);
    void (*poll)(xg address); /* wait a little for a change at address; returns early rather than late */
    void (*ring)(xg address); /* tell who polls that the word at address has changed */
};
extern _Thread_local struct hoop_device_emulation hoop_device_emulation;

/* The kernels of the C build, ended by a row without a name. */
struct hoop_device_kernel {
    const char *name;
    void (*run)(const void *argument);
    size_t argument_size;
};
extern const struct hoop_device_kernel hoop_device_kernels[];

#define XKERNEL(name, T)                     \
    static void name##_body(T argument);     \
    void name(const void *parameters);       \
    void name(const void *parameters)        \
    {                                        \
        name##_body(*(const T *)parameters); \
    }                                        \
    static void name##_body(const T argument)
#define XKERNEL_ROW(name, T)   \
    {                          \
#name, name, sizeof(T) \
    }
#define XDEVICE             static inline __attribute__((unused))
#define XP(T, address)      ((T *)(uintptr_t)((address) + (uint64_t)hoop_device_emulation.delta))
#define XTID                hoop_device_emulation.thread
#define XNT                 hoop_device_emulation.threads
#define XBID                hoop_device_emulation.block
#define XNB                 hoop_device_emulation.blocks
#define XSHARED(T, name)    T *name = (T *)hoop_device_emulation.shared(sizeof(T))
#define XSYNC()             hoop_device_emulation.sync()
#define XRAISE(flag, value) __atomic_store_n(flag, (uint32_t)(value), __ATOMIC_RELAXED)
#define XRAISED(flag)       __atomic_load_n(flag, __ATOMIC_RELAXED)
#define XPOLL(address)      hoop_device_emulation.poll(address)

XDEVICE uint64_t x_ld_acq(xg address)
{
    return __atomic_load_n(XP(uint64_t, address), __ATOMIC_ACQUIRE);
}

XDEVICE void x_st_rel(xg address, uint64_t value)
{
    __atomic_store_n(XP(uint64_t, address), value, __ATOMIC_RELEASE);
    hoop_device_emulation.ring(address);
}

XDEVICE struct x16 x_ld16(xg address)
{
    return *XP(struct x16, address);
}

XDEVICE void x_st16(xg address, struct x16 value)
{
    *XP(struct x16, address) = value;
}

XDEVICE struct x16 x_ld_halves(xg address)
{
    struct x16 value;

    value.low = __atomic_load_n(XP(uint64_t, address), __ATOMIC_ACQUIRE);
    value.high = __atomic_load_n(XP(uint64_t, address) + 1, __ATOMIC_ACQUIRE);
    return value;
}

/* The later half first, as a bus may bring them. */
XDEVICE void x_st_halves(xg address, struct x16 value)
{
    __atomic_store_n(XP(uint64_t, address) + 1, value.high, __ATOMIC_RELEASE);
    __atomic_store_n(XP(uint64_t, address), value.low, __ATOMIC_RELEASE);
    hoop_device_emulation.ring(address);
}

#endif

/* ---- eight bytes of data that travel with their flag ----
 *
 * They are sent as sixteen: four bytes of data and the flag, twice. Who finds both flags has all of the data. Nothing but a half has to arrive
 * as a whole: over NVLink sixteen bytes would, but over PCIe, and in memory of the host, nobody promises that of more than eight. */

/* The flag of a frame's number, which is at least 1. It is never 0, which is what the area holds at first; and what an older frame has left
 * in the same place differs unless 2^32 - 5 times the number of slots frames (that is a prime) have gone by without a word there. */
XDEVICE uint32_t x_flag(uint64_t number)
{
    const uint32_t flag = (uint32_t)number + 5 * (uint32_t)(number >> 32);

    return flag ? flag : 1;
}

XDEVICE void x_st_flagged(xg address, uint64_t data, uint64_t number)
{
    const uint64_t flag = (uint64_t)x_flag(number) << 32;
    struct x16 halves;

    halves.low = flag | (uint32_t)data;
    halves.high = flag | data >> 32;
    x_st_halves(address, halves);
}

/* The data that are there, whosever they are. */
XDEVICE uint64_t x_flagged_data(struct x16 halves)
{
    return (uint32_t)halves.low | halves.high << 32;
}

XDEVICE uint32_t x_is_flagged(struct x16 halves, uint64_t number)
{
    const uint32_t flag = x_flag(number);

    return (uint32_t)(halves.low >> 32) == flag && (uint32_t)(halves.high >> 32) == flag;
}

#endif
