// SPDX-License-Identifier: BSD-3-Clause
#include "measure.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

static void sum(void *out, const void *a, const void *b, size_t count)
{
    gloo::sum<float>(out, a, b, count);
}

static void all_reduce(void *context, const float *send, float *recv, size_t count)
{
    gloo::AllreduceOptions options(*static_cast<std::shared_ptr<gloo::Context> *>(context));

    options.setInput(const_cast<float *>(send), count);
    options.setOutput(recv, count);
    options.setReduceFunction(sum);
    gloo::allreduce(options);
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
    const char *size = getenv("HOOP_SIZE");
    if (size == nullptr)
        measure_fail(&m, "HOOP_SIZE", "start it by hooprun");
    auto rendezvous = std::make_shared<gloo::rendezvous::Context>(m.rank, atoi(size));
    gloo::rendezvous::FileStore store(std::filesystem::path(m.meeting).parent_path().string());
    gloo::transport::tcp::attr address("127.0.0.1");
    auto device = gloo::transport::tcp::CreateDevice(address);
    rendezvous->connectFullMesh(store, device);
    std::shared_ptr<gloo::Context> context = rendezvous;
    m.own = true; /* its event loop is a thread of its own */
    measure_join(&m, m.rank, atoi(size));
    snprintf(title, sizeof(title), "Gloo %d.%d.%d", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
    measure_title(&m, title);
    struct measure_peer peer = {&context, all_reduce, barrier, measure_ordinary(&m), measure_ordinary(&m)};
    measure_sizes(&m, &peer, nullptr);
    measure_barrier(&m);
    return 0;
}
