// SPDX-License-Identifier: BSD-3-Clause
/* CUDA devices: what they are, their contexts, and the memory, streams and events in them.
 *
 * A struct hoop_cuda is one device in use by this process. It holds the device's primary context, the one that the program's own
 * CUDA code uses, so that both see the same memory; it is shared by all who open the device and never reset. Calls here
 * make that context current for as long as they last and put back what was current before: a program's own context never changes
 * under it. What callers do with the driver themselves they put between hoop_cuda_enter and hoop_cuda_leave.
 *
 * Copies and launches only enqueue; what went wrong in them shows at a later call on the same context, and stays.
 * Any thread may call anything here. Errors, unless said otherwise, are those of hoop_cuda_check: HOOP_ERR_MEMORY,
 * HOOP_ERR_UNSUPPORTED, HOOP_ERR_SYSTEM.
 */
#ifndef HOOP_MEM_CUDA_H
#define HOOP_MEM_CUDA_H

#include "mem/cuda_driver.h"

/* ---- devices, cuda.c ---- */

/* What is known of a device without a context on it. Between processes a device is named by its uuid, never by its ordinal. */
struct hoop_cuda_device {
    int ordinal; /* in this process, which may see only some of the devices */
    char name[128];
    unsigned char uuid[16]; /* of the MIG instance, if it is one */
    char bus[20];           /* "0000:3b:00.0", in lower case; that of the whole GPU for a MIG instance */
    int major, minor;       /* compute capability */
    int multiprocessors;
    size_t bytes;     /* of its memory */
    int host_node;    /* the host's NUMA node that it is near; -1: unknown */
    bool mig;         /* a part of a GPU */
    bool mps;         /* kernels of several processes run side by side (MPS) */
    bool integrated;  /* shares the host's memory */
    bool preemption;  /* a kernel that waits can be put aside for another */
    bool cooperative; /* cooperative launches */
    bool host_register;
    bool host_pointer; /* registered host memory has the same address on the device */
    bool managed;
    bool virtual_memory, posix_fd, dmabuf;
};

/* Facts of device `ordinal`. No context is made.
 * Errors: HOOP_ERR_ARG (no such device); HOOP_ERR_UNSUPPORTED (no driver: says why). */
enum hoop_status hoop_cuda_device(int ordinal, struct hoop_cuda_device *device);

/* Can the device reach the other's memory?   Errors: as hoop_cuda_device. */
enum hoop_status hoop_cuda_peer_facts(int ordinal, int peer, bool *access, bool *native_atomics, int *rank);

/* The device whose primary context is current on this thread; -1: none, and *reason (static text) says why.
 * Starts nothing: a program that uses no CUDA has none. */
int hoop_cuda_current(const char **reason);

/* ---- a device in use ---- */

struct hoop_cuda {
    const struct hoop_cuda_driver *driver;
    struct hoop_cuda_device device;
    hoop_cu_context context;
    int uses;   /* how often it is open */
    void *word; /* for which a stream has waited, to see whether it can; to free it earlier might wait for the device */
};

/* Open device `ordinal`: the first open retains its primary context (which may take long), later ones return the same.
 * Errors: as hoop_cuda_device, and those of the driver; HOOP_ERR_UNSUPPORTED also where streams cannot wait for words of memory. */
enum hoop_status hoop_cuda_open(int ordinal, struct hoop_cuda **cuda);

/* Close it; the last close gives the context back. NULL is allowed. */
void hoop_cuda_close(struct hoop_cuda *cuda);

/* Make the device's context current on this thread; leave puts the earlier one back. They nest. */
enum hoop_status hoop_cuda_enter(const struct hoop_cuda *cuda);
void hoop_cuda_leave(const struct hoop_cuda *cuda);

/* Let kernels and copies of this device reach the memory of another in this process. Stays so; may be repeated.
 * Errors: HOOP_ERR_UNSUPPORTED (there is no peer access between the two). */
enum hoop_status hoop_cuda_reach(const struct hoop_cuda *cuda, const struct hoop_cuda *peer);

/* ---- what a pointer is ---- */

enum hoop_cuda_kind {
    HOOP_CUDA_HOST,    /* memory that the driver does not know */
    HOOP_CUDA_PINNED,  /* host memory that devices reach: allocated for it, or registered */
    HOOP_CUDA_MANAGED, /* moves between host and devices as it is used */
    HOOP_CUDA_DEVICE
};

struct hoop_cuda_memory {
    enum hoop_cuda_kind kind;
    int ordinal;          /* the device, of memory that the driver knows; else -1 */
    hoop_cu_address base; /* of its allocation; 0: unknown */
    size_t bytes;         /* of its allocation; 0: unknown */
    uint64_t id;          /* of its allocation, never used twice in a process; 0: unknown */
    bool ipc;             /* another process can open it by hoop_cuda_export */
    bool posix_fd;        /* it can be passed as a file descriptor */
};

/* Never fails for a pointer of any kind; NULL is host memory.   Errors: a context in an error state. */
enum hoop_status hoop_cuda_classify(const struct hoop_cuda_driver *driver, const void *pointer,
                                    struct hoop_cuda_memory *memory);

/* "device", "pinned host", … */
const char *hoop_cuda_kind_name(enum hoop_cuda_kind kind);

/* ---- device memory, cuda_memory.c ---- */

static inline hoop_cu_address hoop_cuda_address(const void *pointer)
{
    return (hoop_cu_address)(uintptr_t)pointer;
}

/* Memory that other processes can open by hoop_cuda_export. Its content is undefined. Free may wait for the device.
 * Errors: HOOP_ERR_MEMORY says what was asked for and what is left. */
enum hoop_status hoop_cuda_alloc(const struct hoop_cuda *cuda, size_t bytes, hoop_cu_address *address);
enum hoop_status hoop_cuda_free(const struct hoop_cuda *cuda, hoop_cu_address address);

/* Memory that is mapped page by page, and passed to other processes as a file descriptor. */
struct hoop_cuda_block {
    hoop_cu_address address;
    size_t bytes; /* whole granules */
    hoop_cu_memory memory;
};

/* Errors: HOOP_ERR_UNSUPPORTED (the device or driver has no such memory). */
enum hoop_status hoop_cuda_block_alloc(const struct hoop_cuda *cuda, size_t bytes, struct hoop_cuda_block *block);

/* A file descriptor for the block; the caller closes it. */
enum hoop_status hoop_cuda_block_export(const struct hoop_cuda *cuda, const struct hoop_cuda_block *block,
                                        int *descriptor);

/* Map what another process exported; `bytes` of its block. The descriptor stays the caller's. */
enum hoop_status hoop_cuda_block_import(const struct hoop_cuda *cuda, int descriptor, size_t bytes,
                                        struct hoop_cuda_block *block);

/* Unmap and release; of an import, too. An empty block is allowed. */
enum hoop_status hoop_cuda_block_free(const struct hoop_cuda *cuda, struct hoop_cuda_block *block);

/* ---- memory of other processes, cuda_import.c ---- */

/* What another process needs to open a piece of device memory. It is a key to that memory: send it only to ranks.
 * A handle opens a whole allocation at its base, wherever the pointer was; so the place in it goes along. */
struct hoop_cuda_export {
    hoop_cu_ipc_memory handle;
    uint64_t offset;        /* of the pointer in the allocation */
    uint64_t bytes;         /* from there to its end */
    uint64_t id;            /* of the allocation: handles may repeat when memory is freed and allocated again */
    unsigned char uuid[16]; /* of the device */
};

/* Errors: HOOP_ERR_UNSUPPORTED (no device memory, or of a kind without handle: says which). */
enum hoop_status hoop_cuda_export(const struct hoop_cuda *cuda, const void *pointer, struct hoop_cuda_export *export);

/* Open it in this process, for this device. An allocation is opened once and counted.
 * Errors: HOOP_ERR_UNSUPPORTED, HOOP_ERR_SYSTEM (it is this process's own, freed, or no peer access). */
enum hoop_status hoop_cuda_import(struct hoop_cuda *cuda, const struct hoop_cuda_export *export,
                                  hoop_cu_address *address);

/* Give one import back: the address that it gave. The last one closes the allocation; its exporter may not free it before. */
enum hoop_status hoop_cuda_import_end(struct hoop_cuda *cuda, hoop_cu_address address);

/* ---- host memory that devices reach, cuda_host.c ---- */

/* Pinned host memory; *address is where this device sees it. */
enum hoop_status hoop_cuda_host_alloc(const struct hoop_cuda *cuda, size_t bytes, void **memory,
                                      hoop_cu_address *address);
enum hoop_status hoop_cuda_host_free(const struct hoop_cuda *cuda, void *memory);

/* Let devices reach mapped host memory, also shared mappings: whole pages. A range may be registered for several devices of this
 * process; each gives its registration back. *address is where this device sees it.
 * Errors: HOOP_ERR_ARG (no whole pages; or overlaps another registration), HOOP_ERR_UNSUPPORTED. */
enum hoop_status hoop_cuda_host_register(const struct hoop_cuda *cuda, void *memory, size_t bytes,
                                         hoop_cu_address *address);
enum hoop_status hoop_cuda_host_unregister(const struct hoop_cuda *cuda, void *memory);

/* ---- streams, events and copies, cuda_stream.c ---- */

/* A stream of its own that does not wait for the default stream. urgent: goes before others where the device chooses. */
enum hoop_status hoop_cuda_stream_create(const struct hoop_cuda *cuda, bool urgent, hoop_cu_stream *stream);
enum hoop_status hoop_cuda_stream_destroy(const struct hoop_cuda *cuda, hoop_cu_stream stream);

/* HOOP_OK: all that was given to it is done; HOOP_AGAIN: not yet.   Errors: what went wrong in it. */
enum hoop_status hoop_cuda_stream_query(const struct hoop_cuda *cuda, hoop_cu_stream stream);

/* Wait until all that was given to the stream is done.
 * deadline: of hoop_deadline.   Errors: HOOP_ERR_TIMEOUT; what went wrong in it. */
enum hoop_status hoop_cuda_stream_wait(const struct hoop_cuda *cuda, hoop_cu_stream stream, uint64_t deadline);

/* Is the stream being captured into a graph? */
enum hoop_status hoop_cuda_stream_capturing(const struct hoop_cuda *cuda, hoop_cu_stream stream, bool *capturing);

/* The device of the context that a stream belongs to.   Errors: as the driver's. */
enum hoop_status hoop_cuda_stream_device(const struct hoop_cuda_driver *driver, hoop_cu_stream stream, int *ordinal);

/* Events order streams; these measure no time. One that was never recorded counts as done. */
enum hoop_status hoop_cuda_event_create(const struct hoop_cuda *cuda, hoop_cu_event *event);
enum hoop_status hoop_cuda_event_destroy(const struct hoop_cuda *cuda, hoop_cu_event event);
enum hoop_status hoop_cuda_event_record(const struct hoop_cuda *cuda, hoop_cu_event event, hoop_cu_stream stream);
enum hoop_status hoop_cuda_event_query(const struct hoop_cuda *cuda, hoop_cu_event event);

/* What is given to the stream from now on waits for the event's last record so far. */
enum hoop_status hoop_cuda_stream_wait_event(const struct hoop_cuda *cuda, hoop_cu_stream stream, hoop_cu_event event);

/* What is given to the stream from now on waits until the word, in memory that the device reaches, is `value` or has gone on from there
 * by less than half of all values. */
enum hoop_status hoop_cuda_stream_wait_word(const struct hoop_cuda *cuda, hoop_cu_stream stream, hoop_cu_address word,
                                            uint32_t value);

/* Copy in stream order, between host and device memory of any kind. Host memory that is not pinned may be read at once or late:
 * it stays untouched until the stream is done. */
enum hoop_status hoop_cuda_copy(const struct hoop_cuda *cuda, void *to, const void *from, size_t bytes,
                                hoop_cu_stream stream);

/* Fill with a byte, in stream order. */
enum hoop_status hoop_cuda_fill(const struct hoop_cuda *cuda, hoop_cu_address address, unsigned char byte, size_t bytes,
                                hoop_cu_stream stream);

#endif
