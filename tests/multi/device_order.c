// SPDX-License-Identifier: BSD-3-Clause
/* The communicator takes the orders of its rings from the topology: five fake GPUs whose NVLinks make a circle that is not that of their
 * bus ids (topo/circle.xml). Sums are right by every algorithm that follows orders, on one channel and on several; what is told names the
 * circle; where a device is not in the topology the ranks' numbers stand, with the reason; stated facts
 * go over the file; a file that cannot be read is an error. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_help.h"
#include "harness.h"

enum { RANKS = 5, COUNT = 3001, TEXT = 32768 };

static char circle[4096];
static const char *algos[] = {"ring", "chain", "tree", "dbtree"};

static void settings(const char *algo, const char *channels)
{
    setenv("FAKECUDA_MACHINE",
           "device bus=0000:10:00.0;device bus=0000:20:00.0;device bus=0000:30:00.0;device bus=0000:40:00.0;"
           "device bus=0000:50:00.0;peer all good",
           1);
    setenv("HOOP_DEVICE", "cuda", 1);
    setenv("HOOP_TOPO_FILE", circle, 1);
    setenv("HOOP_ALGO", algo, 1);
    setenv("HOOP_CHANNELS", channels, 1);
}

struct space {
    struct cuda_help cuda;
    int32_t *host, *device;
};

static void put(struct space *space, int rank)
{
    for (int i = 0; i < RANKS * COUNT; i++)
        space->host[i] = (rank + 1) * 1000003 + i * 7;
    cuda_copy(&space->cuda, space->device, space->host, RANKS * COUNT * sizeof(int32_t), NULL);
    cuda_synchronize(&space->cuda, NULL);
}

static bool sums(struct space *space, int first, int count)
{
    cuda_copy(&space->cuda, space->host, space->device, RANKS * COUNT * sizeof(int32_t), NULL);
    cuda_synchronize(&space->cuda, NULL);
    for (int i = first; i < first + count; i++)
        if (space->host[i] != 15 * 1000003 + 5 * i * 7) /* 1 + 2 + 3 + 4 + 5 */
            return false;
    return true;
}

static bool comes_from(struct space *space, int block, int root)
{
    for (int i = block * COUNT; i < (block + 1) * COUNT; i++)
        if (space->host[i] != (root + 1) * 1000003 + i * 7)
            return false;
    return true;
}

static int call_all(struct space *space, int rank, struct hoop_comm *comm)
{
    int32_t *all = space->device;

    put(space, rank);
    HARNESS_EXPECT(hoop_all_reduce(all, all, RANKS * COUNT, HOOP_I32, HOOP_SUM, comm, NULL) == HOOP_OK);
    HARNESS_EXPECT(sums(space, 0, RANKS * COUNT));
    put(space, rank);
    HARNESS_EXPECT(hoop_reduce_scatter(all, all + rank * COUNT, COUNT, HOOP_I32, HOOP_SUM, comm, NULL) == HOOP_OK);
    HARNESS_EXPECT(sums(space, rank * COUNT, COUNT));
    put(space, rank);
    HARNESS_EXPECT(hoop_all_gather(all + rank * COUNT, all, COUNT, HOOP_I32, comm, NULL) == HOOP_OK);
    sums(space, 0, 0);
    for (int block = 0; block < RANKS; block++)
        HARNESS_EXPECT(comes_from(space, block, block));
    for (int root = 0; root < RANKS; root++) {
        put(space, rank);
        HARNESS_EXPECT(hoop_reduce(all, all, COUNT, HOOP_I32, HOOP_SUM, root, comm, NULL) == HOOP_OK);
        HARNESS_EXPECT(rank != root || sums(space, 0, COUNT));
        put(space, rank);
        HARNESS_EXPECT(hoop_broadcast(all, all, COUNT, HOOP_I32, root, comm, NULL) == HOOP_OK);
        HARNESS_EXPECT(!sums(space, 0, 1) && comes_from(space, 0, root));
    }
    return 0;
}

/* argument: what hoop_explain must tell. */
static int body(int rank, struct hoop_comm *comm, void *argument)
{
    struct space space;
    char *text = malloc(TEXT), plan[HARNESS_PLAN];
    int ordinal = -1;

    ck_assert(text != NULL && hoop_comm_device(comm, &ordinal) == HOOP_OK);
    cuda_open(&space.cuda, ordinal, 1);
    space.host = cuda_host(&space.cuda, RANKS * COUNT * sizeof(int32_t));
    space.device = cuda_device(&space.cuda, RANKS * COUNT * sizeof(int32_t));
    int failed = call_all(&space, rank, comm);
    harness_last_plan(comm, plan);
    HARNESS_EXPECT(failed || strstr(plan, "/kernel/") != NULL);
    HARNESS_EXPECT(failed || hoop_explain(comm, "all_reduce", 1 << 20, 0, text, TEXT) == HOOP_OK);
    if (!failed && strstr(text, argument) == NULL) {
        fprintf(stderr, "rank %d: not told: %s\n%s", rank, (const char *)argument, text);
        failed = 1;
    }
    free(text);
    failed |= hoop_comm_destroy(comm) != HOOP_OK;
    cuda_close(&space.cuda);
    return failed;
}

START_TEST(by_the_circle)
{
    settings(algos[_i / 2], _i % 2 ? "3" : "1");
    harness_threads(RANKS, body, "in the order of 2 rings of the topology: 0 2 4 1 3 and so on");
}
END_TEST

START_TEST(by_numbers)
{
    settings("ring", "1");
    setenv("FAKECUDA_MACHINE", "", 1);
    setenv("FAKECUDA_DEVICES", "5", 1);
    harness_threads(RANKS, body,
                    "in the order of ranks: the device of rank 0, 0000:01:00.0, is no GPU of the topology");
}
END_TEST

START_TEST(no_such_file)
{
    settings("ring", "1");
    setenv("HOOP_TOPO_FILE", "/nonexistent/box.xml", 1);
    harness_run(RANKS, harness_refused, "/nonexistent/box.xml", 60);
}
END_TEST

static void facts(const char *text)
{
    char path[] = "/tmp/hoop-facts-XXXXXX";
    const int file = mkstemp(path);

    ck_assert(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text) && close(file) == 0);
    setenv("HOOP_TOPO_FACTS", path, 1);
}

/* A person knows of another circle, by nearer links. */
START_TEST(by_facts)
{
    settings("ring", "1");
    facts(
        "GPU0 GPU2 nvlink 0\nGPU0 GPU3 nvlink 0\nGPU1 GPU3 nvlink 0\nGPU1 GPU4 nvlink 0\nGPU2 GPU4 nvlink 0\n"
        "GPU0 GPU1 nvlink 4\nGPU1 GPU2 nvlink 4\nGPU2 GPU3 nvlink 4\nGPU3 GPU4 nvlink 4\n0000:50:00.0 GPU0 nvlink 4\n");
    harness_threads(RANKS, body, "in the order of 2 rings of the topology: 0 1 2 3 4 and so on");
    unlink(getenv("HOOP_TOPO_FACTS"));
}
END_TEST

START_TEST(no_such_fact)
{
    settings("ring", "1");
    facts("GPU0 GPU1 nvlink 4\nGPU5 numa 0\n");
    harness_run(RANKS, harness_refused, ":2: there is no 'GPU5'", 60);
    unlink(getenv("HOOP_TOPO_FACTS"));
}
END_TEST

int main(int argc, char **argv)
{
    const char *source = getenv("TEST_SOURCE");

    (void)argc;
    cuda_driver_or_skip(argv);
    if (!cuda_is_fake()) {
        puts("device_order: skipped: the devices' places are the fake driver's");
        return 77;
    }
    snprintf(circle, sizeof circle, "%s/tests/unit/topo/circle.xml", source != NULL ? source : ".");
    Suite *suite = suite_create("device_order");
    TCase *tests = tcase_create("device_order");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, by_the_circle, 0, 8);
    tcase_add_test(tests, by_numbers);
    tcase_add_test(tests, no_such_file);
    tcase_add_test(tests, by_facts);
    tcase_add_test(tests, no_such_fact);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
