// SPDX-License-Identifier: BSD-3-Clause
#include "measure.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

static void sum(void *out, const void *a, const void *b, size_t count)
{
    gloo::sum<float>(out, a, b, count);
}

typedef std::shared_ptr<gloo::Context> context_pointer;

/* It has no reduce-scatter of this kind. */
static void run(void *context, enum measure_call what, const float *send, float *recv, size_t count)
{
    const context_pointer &c = *static_cast<context_pointer *>(context);
    float *const from = const_cast<float *>(send);

    if (what == BROADCAST) {
        gloo::BroadcastOptions options(c);
        options.setOutput(c->rank == 0 ? from : recv, count);
        options.setRoot(0);
        gloo::broadcast(options);
    } else if (what == ALL_GATHER) {
        gloo::AllgatherOptions options(c);
        options.setInput(from, count / c->size);
        options.setOutput(recv, count);
        gloo::allgather(options);
    } else if (what == ALL_TO_ALL) {
        gloo::AlltoallOptions options(c);
        options.setInput(from, count);
        options.setOutput(recv, count);
        gloo::alltoall(options);
    } else {
        gloo::AllreduceOptions options(c);
        options.setInput(from, count);
        options.setOutput(recv, count);
        options.setReduceFunction(sum);
        gloo::allreduce(options);
    }
}

static void barrier(void *context)
{
    gloo::BarrierOptions options(*static_cast<std::shared_ptr<gloo::Context> *>(context));

    gloo::barrier(options);
}

int main(int argc, char **argv)
{
    struct measure m;
    char title[64];

    measure_begin(&m, argc, argv);
    if (m.call == REDUCE_SCATTER)
        return 0;
    const char *size = getenv("HOOP_SIZE");
    if (size == nullptr)
        measure_fail(&m, "HOOP_SIZE", "start it by hooprun");
    auto rendezvous = std::make_shared<gloo::rendezvous::Context>(m.rank, atoi(size));
    gloo::rendezvous::FileStore store(std::filesystem::path(m.meeting).parent_path().string());
    gloo::transport::tcp::attr address("127.0.0.1");
    if (getenv("MEASURE_IFACE") != nullptr) { /* ranks on several hosts */
        address = gloo::transport::tcp::attr();
        address.iface = getenv("MEASURE_IFACE");
    }
    auto device = gloo::transport::tcp::CreateDevice(address);
    rendezvous->connectFullMesh(store, device);
    std::shared_ptr<gloo::Context> context = rendezvous;
    m.own = true; /* its event loop is a thread of its own */
    measure_join(&m, m.rank, atoi(size));
    snprintf(title, sizeof(title), "Gloo %d.%d.%d", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
    measure_title(&m, title);
    struct measure_peer peer = {&context, run, barrier, measure_ordinary(&m), measure_ordinary(&m)};
    measure_sizes(&m, &peer, nullptr);
    measure_barrier(&m);
    return 0;
}
