// SPDX-License-Identifier: BSD-3-Clause
/* What tests of device memory need of the CUDA driver: the fake one, or with TEST_DRIVER=real the machine's own (tests/gpu/run does
 * that). Everything fails the test when it fails. */
#ifndef HOOP_TESTS_CUDA_HELP_H
#define HOOP_TESTS_CUDA_HELP_H

#include "mem/cuda.h"

enum { CUDA_HELP_STREAMS = 4, CUDA_HELP_BUFFERS = 16 };

struct cuda_help {
    struct hoop_cuda *cuda;
    int streams, hosts, devices;
    hoop_cu_stream stream[CUDA_HELP_STREAMS];
    void *host[CUDA_HELP_BUFFERS];
    hoop_cu_address device[CUDA_HELP_BUFFERS];
};

/* Begin of main: run the program again so that it finds the fake driver; where there is none, or the real one has no device, exit with 77. */
void cuda_driver_or_skip(char **argv);
bool cuda_is_fake(void);

/* Can a test run that needs so many devices, and the fake's faults? If not it says so; main leaves it out. */
bool cuda_suits(const char *test, int devices, bool faults);

/* Have that many devices, before the driver is started: the fake makes them; of real ones those beyond are hidden, and where there are
 * fewer several ranks share one. Returns how many there are. */
int cuda_devices(int wanted);

/* Use a device, with some streams; close frees all. */
void cuda_open(struct cuda_help *help, int ordinal, int streams);
void cuda_close(struct cuda_help *help);

/* Pinned host memory, device memory. */
void *cuda_host(struct cuda_help *help, size_t bytes);
void *cuda_device(struct cuda_help *help, size_t bytes);

/* Copy in the order of the stream; NULL: and wait. */
void cuda_copy(struct cuda_help *help, void *to, const void *from, size_t bytes, hoop_cu_stream stream);

/* In the stream: overwrite memory of the host with rubbish. */
void cuda_wait_late(struct cuda_help *help, void *memory, size_t bytes, hoop_cu_stream stream);

/* Wait for the stream. */
void cuda_synchronize(struct cuda_help *help, hoop_cu_stream stream);

/* Capture what this thread gives to the stream from here on; end it with something that can be replayed, and is to be forgotten. */
void cuda_capture(struct cuda_help *help, hoop_cu_stream stream);
hoop_cu_graph_exec cuda_captured(struct cuda_help *help, hoop_cu_stream stream);
void cuda_replay(struct cuda_help *help, hoop_cu_graph_exec graph, hoop_cu_stream stream);
void cuda_forget(struct cuda_help *help, hoop_cu_graph_exec graph);

#endif
