// SPDX-License-Identifier: BSD-3-Clause
/* One collective on a virtual network: the plans of all ranks, run by the executor, driven from one thread. Anything wrong fails
 * the test. */
#ifndef HOOP_TESTS_SIMULATED_H
#define HOOP_TESTS_SIMULATED_H

#include "cases.h"
#include "transports/sim/sim.h"

enum { SIMULATED_MOST = 16 };

struct simulated {
    const struct hoop_algo *algo;
    const struct hoop_groups *groups; /* NULL: none */
    int channels;
    size_t frame; /* bytes of one slice */
    const struct hoop_sim_config *config;
    /* Write a rank's input, look at its output. */
    void (*give)(const struct hoop_case *c, int rank, void *in, void *data);
    void (*take)(const struct hoop_case *c, int rank, const void *out, void *data);
    void *data;
};

void simulated_run(const struct hoop_case *c, const struct simulated *how);

#endif
