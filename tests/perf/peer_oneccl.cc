// SPDX-License-Identifier: BSD-3-Clause
#include "measure.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <oneapi/ccl.hpp>

static void run(void *context, enum measure_call what, const float *send, float *recv, size_t count)
{
    ccl::communicator &comm = *static_cast<ccl::communicator *>(context);
    const size_t block = count / comm.size();
    const auto type = ccl::datatype::float32;

    switch (what) {
    case BROADCAST:
        ccl::broadcast(comm.rank() == 0 ? const_cast<float *>(send) : recv, count, type, 0, comm).wait();
        break;
    case ALL_GATHER:
        ccl::allgatherv(send, block, recv, std::vector<size_t>(comm.size(), block), type, comm).wait();
        break;
    case REDUCE_SCATTER:
        ccl::reduce_scatter(send, recv, block, type, ccl::reduction::sum, comm).wait();
        break;
    case ALL_TO_ALL:
        ccl::alltoall(send, recv, block, type, comm).wait();
        break;
    default:
        ccl::allreduce(send, recv, count, type, ccl::reduction::sum, comm).wait();
    }
}

static void barrier(void *context)
{
    ccl::barrier(*static_cast<ccl::communicator *>(context)).wait();
}

/* Rank 0 makes the store and leaves its address in a file beside the meeting. */
static ccl::shared_ptr_class<ccl::kvs> open_store(struct measure *m)
{
    const std::string path = std::string(m->meeting) + ".address";
    ccl::kvs::address_type address;

    if (m->rank == 0) {
        auto store = ccl::create_main_kvs();

        address = store->get_address();
        std::ofstream(path, std::ios::binary).write(address.data(), address.size());
        measure_barrier(m);
        return store;
    }
    measure_barrier(m);
    if (!std::ifstream(path, std::ios::binary).read(address.data(), address.size()))
        measure_fail(m, path.c_str(), "cannot be read");
    return ccl::create_kvs(address);
}

int main(int argc, char **argv)
{
    struct measure m;
    const char *size = getenv("PMI_SIZE");

    measure_begin(&m, argc, argv);
    if (size == nullptr)
        measure_fail(&m, "PMI_SIZE", "start it by mpiexec");
    ccl::init();
    measure_join(&m, m.rank, atoi(size));
    auto store = open_store(&m);
    ccl::communicator comm = ccl::create_communicator(m.ranks, m.rank, store);
    measure_title(&m, (std::string("oneCCL ") + ccl::get_library_version().full).c_str());
    struct measure_peer peer = {&comm, run, barrier, measure_ordinary(&m), measure_ordinary(&m)};
    measure_sizes(&m, &peer, nullptr);
    return 0;
}
