// SPDX-License-Identifier: BSD-3-Clause
/* Streams, events and copies: the driver's calls with the context around them and their results as statuses. */
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "mem/cuda.h"

/* Run one call of the driver in the device's context. */
#define IN_CONTEXT(cuda, name, ...)                                                                               \
    do {                                                                                                          \
        const enum hoop_status entered = hoop_cuda_enter(cuda);                                                   \
        if (entered != HOOP_OK)                                                                                   \
            return entered;                                                                                       \
        const hoop_cu_result result = (cuda)->driver->name(__VA_ARGS__);                                          \
        hoop_cuda_leave(cuda);                                                                                    \
        return result == HOOP_CU_NOT_READY ? HOOP_AGAIN : hoop_cuda_check(result, #name, (cuda)->device.ordinal); \
    } while (0)

enum hoop_status hoop_cuda_stream_create(const struct hoop_cuda *cuda, bool urgent, hoop_cu_stream *stream)
{
    int least = 0, greatest = 0;
    enum hoop_status status = hoop_cuda_enter(cuda);

    if (status != HOOP_OK)
        return status;
    if (urgent)
        cuda->driver->cuCtxGetStreamPriorityRange(&least, &greatest);
    status = hoop_cuda_check(cuda->driver->cuStreamCreateWithPriority(stream, HOOP_CU_STREAM_NON_BLOCKING, greatest),
                             "cuStreamCreateWithPriority", cuda->device.ordinal);
    hoop_cuda_leave(cuda);
    return status;
}

enum hoop_status hoop_cuda_stream_destroy(const struct hoop_cuda *cuda, hoop_cu_stream stream)
{
    IN_CONTEXT(cuda, cuStreamDestroy, stream);
}

enum hoop_status hoop_cuda_stream_query(const struct hoop_cuda *cuda, hoop_cu_stream stream)
{
    IN_CONTEXT(cuda, cuStreamQuery, stream);
}

/* Short waits end while polling; long ones cost little. */
static void pause_after(unsigned polls)
{
    const struct timespec nap = {0, polls < 2000 ? 20000 : 200000};

    if (polls < 200)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

enum hoop_status hoop_cuda_stream_wait(const struct hoop_cuda *cuda, hoop_cu_stream stream, uint64_t deadline)
{
    enum hoop_status status = hoop_cuda_enter(cuda);
    hoop_cu_result result;
    unsigned polls = 0;

    if (status != HOOP_OK)
        return status;
    while ((result = cuda->driver->cuStreamQuery(stream)) == HOOP_CU_NOT_READY && !hoop_expired(deadline))
        pause_after(polls++);
    hoop_cuda_leave(cuda);
    if (result == HOOP_CU_NOT_READY)
        return hoop_fail(HOOP_ERR_TIMEOUT, "work on CUDA device %d has not ended in time", cuda->device.ordinal);
    return hoop_cuda_check(result, "work in a stream", cuda->device.ordinal);
}

enum hoop_status hoop_cuda_stream_capturing(const struct hoop_cuda *cuda, hoop_cu_stream stream, bool *capturing)
{
    hoop_cu_capture_status capture = HOOP_CU_CAPTURE_NONE;
    enum hoop_status status = hoop_cuda_enter(cuda);

    if (status != HOOP_OK)
        return status;
    status = hoop_cuda_check(cuda->driver->cuStreamIsCapturing(stream, &capture), "cuStreamIsCapturing",
                             cuda->device.ordinal);
    hoop_cuda_leave(cuda);
    *capturing = capture != HOOP_CU_CAPTURE_NONE;
    return status;
}

enum hoop_status hoop_cuda_stream_device(const struct hoop_cuda_driver *driver, hoop_cu_stream stream, int *ordinal)
{
    hoop_cu_context context = NULL, ours = NULL;
    hoop_cu_device device = -1;

    enum hoop_status status = hoop_cuda_check(driver->cuStreamGetCtx(stream, &context), "cuStreamGetCtx", -1);
    if (status == HOOP_OK)
        status = hoop_cuda_check(driver->cuCtxPushCurrent(context), "cuCtxPushCurrent", -1);
    if (status != HOOP_OK)
        return status;
    status = hoop_cuda_check(driver->cuCtxGetDevice(&device), "cuCtxGetDevice", -1);
    driver->cuCtxPopCurrent(&ours);
    *ordinal = device;
    return status;
}

enum hoop_status hoop_cuda_event_create(const struct hoop_cuda *cuda, hoop_cu_event *event)
{
    IN_CONTEXT(cuda, cuEventCreate, event, HOOP_CU_EVENT_DISABLE_TIMING);
}

enum hoop_status hoop_cuda_event_destroy(const struct hoop_cuda *cuda, hoop_cu_event event)
{
    IN_CONTEXT(cuda, cuEventDestroy, event);
}

enum hoop_status hoop_cuda_event_record(const struct hoop_cuda *cuda, hoop_cu_event event, hoop_cu_stream stream)
{
    IN_CONTEXT(cuda, cuEventRecord, event, stream);
}

enum hoop_status hoop_cuda_event_query(const struct hoop_cuda *cuda, hoop_cu_event event)
{
    IN_CONTEXT(cuda, cuEventQuery, event);
}

enum hoop_status hoop_cuda_stream_wait_event(const struct hoop_cuda *cuda, hoop_cu_stream stream, hoop_cu_event event)
{
    IN_CONTEXT(cuda, cuStreamWaitEvent, stream, event, 0);
}

enum hoop_status hoop_cuda_stream_wait_word(const struct hoop_cuda *cuda, hoop_cu_stream stream, hoop_cu_address word,
                                            uint32_t value)
{
    IN_CONTEXT(cuda, cuStreamWaitValue32, stream, word, value, 0);
}

enum hoop_status hoop_cuda_copy(const struct hoop_cuda *cuda, void *to, const void *from, size_t bytes,
                                hoop_cu_stream stream)
{
    if (bytes == 0)
        return HOOP_OK;
    IN_CONTEXT(cuda, cuMemcpyAsync, hoop_cuda_address(to), hoop_cuda_address(from), bytes, stream);
}

enum hoop_status hoop_cuda_fill(const struct hoop_cuda *cuda, hoop_cu_address address, unsigned char byte, size_t bytes,
                                hoop_cu_stream stream)
{
    if (bytes == 0)
        return HOOP_OK;
    IN_CONTEXT(cuda, cuMemsetD8Async, address, byte, bytes, stream);
}
