// SPDX-License-Identifier: BSD-3-Clause
/* hoop-topo --measure: how fast memory goes between cores of this machine.
 *
 * Two threads, each bound to a core: the first writes a block of its own memory and the second copies it, which tells the bandwidth; a word
 * goes to and fro between them, which tells the latency of one way. Of several rounds the best counts, since others may use the machine.
 * With more cores than fit a screen the first of each NUMA node stands for it. */
#include <hoop.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "show.h"

enum { MOST_PLACES = 16, BLOCK = 8 << 20, COPIES = 6, BATCHES = 40, TURNS = 100, PATIENCE_S = 10, MOST_CPUS = 1024 };

struct place {
    int cpu, numa;
};

/* What a pair shares. stage: 0, then the steps that both have reached, by turns. */
struct pair {
    int cpu[2];
    char *block, *copy;
    double gigabytes_per_second, nanoseconds;
    _Alignas(64) atomic_int stage;
    _Alignas(64) atomic_uint word;
    _Alignas(64) atomic_bool failed;
};

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool bind_to(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

/* Wait until the other has come so far; false: it does not, or it has failed. */
static bool await(struct pair *pair, int stage)
{
    const double deadline = seconds() + PATIENCE_S;

    while (atomic_load(&pair->stage) < stage) {
        if (atomic_load(&pair->failed) || seconds() > deadline) {
            atomic_store(&pair->failed, true);
            return false;
        }
        sched_yield();
    }
    return true;
}

/* A word to and fro; the first thread keeps the time. Yields only when the other does not answer for long, as where it is not running. */
static bool play(struct pair *pair, unsigned side)
{
    const double deadline = seconds() + PATIENCE_S;
    unsigned turn = side;

    for (int batch = 0; batch < BATCHES; batch++) {
        const double begun = seconds();

        for (int i = 0; i < TURNS; i++, turn += 2) {
            for (unsigned spins = 1; atomic_load_explicit(&pair->word, memory_order_acquire) != turn; spins++)
                if (spins % 4096 == 0) {
                    if (atomic_load(&pair->failed) || seconds() > deadline) {
                        atomic_store(&pair->failed, true);
                        return false;
                    }
                    sched_yield();
                }
            atomic_store_explicit(&pair->word, turn + 1, memory_order_release);
        }
        const double one_way = (seconds() - begun) / TURNS / 2 * 1e9;
        if (side == 0 && (pair->nanoseconds == 0 || one_way < pair->nanoseconds))
            pair->nanoseconds = one_way;
    }
    return true;
}

static void *write_side(void *argument)
{
    struct pair *pair = argument;

    if (!bind_to(pair->cpu[0]))
        atomic_store(&pair->failed, true);
    for (int i = 0; i < COPIES && !atomic_load(&pair->failed); i++) {
        memset(pair->block, i + 1, BLOCK); /* the first time its pages come to be near this core */
        atomic_store(&pair->stage, 2 * i + 1);
        if (!await(pair, 2 * i + 2))
            break;
    }
    if (!atomic_load(&pair->failed))
        play(pair, 0);
    return NULL;
}

static void *read_side(void *argument)
{
    struct pair *pair = argument;

    if (!bind_to(pair->cpu[1]))
        atomic_store(&pair->failed, true);
    memset(pair->copy, 1, BLOCK);
    for (int i = 0; i < COPIES && await(pair, 2 * i + 1); i++) {
        const double begun = seconds();

        memcpy(pair->copy, pair->block, BLOCK);
        const double rate = BLOCK / (seconds() - begun) * 1e-9;
        if (pair->copy[BLOCK / 2] != (char)(i + 1))
            atomic_store(&pair->failed, true);
        if (rate > pair->gigabytes_per_second)
            pair->gigabytes_per_second = rate;
        atomic_store(&pair->stage, 2 * i + 2);
    }
    if (!atomic_load(&pair->failed))
        play(pair, 1);
    return NULL;
}

static bool measure(struct pair *pair)
{
    pthread_t writer, reader;

    atomic_store(&pair->stage, 0);
    atomic_store(&pair->word, 0);
    atomic_store(&pair->failed, false);
    if (pthread_create(&writer, NULL, write_side, pair) != 0)
        return false;
    if (pthread_create(&reader, NULL, read_side, pair) != 0)
        atomic_store(&pair->failed, true);
    else
        pthread_join(reader, NULL);
    pthread_join(writer, NULL);
    return !atomic_load(&pair->failed);
}

/* ---- places ---- */

static int numa_of(const struct hoop_topo *topo, int cpu)
{
    const struct hoop_topo_node *node;

    for (int i = 0; (node = hoop_topo_node(topo, i)) != NULL; i++) {
        char list[LIST_TEXT] = "";

        if (node->kind == HOOP_TOPO_NUMA && hoop_topo_cpu_list(topo, i, list, sizeof list) == HOOP_OK &&
            list_has(list, cpu))
            return node->number;
    }
    return -1;
}

/* The first CPU of each core; where these are too many, of each NUMA node. */
static int find_places(const struct hoop_topo *topo, struct place place[MOST_PLACES])
{
    const int cores = hoop_topo_cores(topo);
    int count = 0;

    for (int core = 0; core < cores && count < MOST_PLACES; core++) {
        int cpus[MOST_CPUS], cpus_count = 0;
        bool known = false;

        if (hoop_topo_bind_core(topo, core, cores, cpus, MOST_CPUS, &cpus_count) != HOOP_OK || cpus_count == 0)
            continue;
        const struct place new = {cpus[0], numa_of(topo, cpus[0])};
        for (int i = 0; i < count && cores > MOST_PLACES; i++)
            known |= place[i].numa == new.numa;
        if (!known)
            place[count++] = new;
    }
    return count;
}

static void put_table(FILE *out, const char *title, const struct place *place, int count, const double *value)
{
    fprintf(out, "%s\n", title);
    for (int j = 0; j < count; j++)
        fprintf(out, "\tCPU%d", place[j].cpu);
    for (int i = 0; i < count; i++) {
        fprintf(out, "\nCPU%d", place[i].cpu);
        for (int j = 0; j < count; j++)
            if (i == j)
                fputs("\t X ", out);
            else
                fprintf(out, "\t%.4g", value[i * MOST_PLACES + j]);
        fprintf(out, "\tNUMA%d", place[i].numa);
    }
    fputs("\n\n", out);
}

static void put_classes(FILE *out, const struct place *place, int count)
{
    fputs("class of the way\n", out);
    for (int j = 0; j < count; j++)
        fprintf(out, "\tCPU%d", place[j].cpu);
    for (int i = 0; i < count; i++) {
        fprintf(out, "\nCPU%d", place[i].cpu);
        for (int j = 0; j < count; j++)
            fprintf(out, "\t%s",
                    i == j                                   ? " X "
                    : place[i].numa < 0 || place[j].numa < 0 ? "?"
                    : place[i].numa == place[j].numa         ? "NUMA"
                                                             : "SYS");
    }
    fputs("\n\nNUMA = cores of one NUMA node, SYS = of two, ? = nobody told\n", out);
}

bool show_measured(const struct hoop_topo *topo, FILE *out)
{
    static double rate[MOST_PLACES * MOST_PLACES], latency[MOST_PLACES * MOST_PLACES];
    struct place place[MOST_PLACES];
    const int count = find_places(topo, place);
    struct pair pair = {.block = NULL};
    bool good = true;

    if (count < 2) {
        fprintf(stderr, "hoop-topo: --measure: this process may use one core only; there is nothing between\n");
        return false;
    }
    for (int i = 0; i < count && good; i++)
        for (int j = 0; j < count && good; j++) {
            if (i == j)
                continue;
            pair = (struct pair){.cpu = {place[i].cpu, place[j].cpu}, .block = malloc(BLOCK), .copy = malloc(BLOCK)};
            good = pair.block != NULL && pair.copy != NULL && measure(&pair);
            rate[i * MOST_PLACES + j] = pair.gigabytes_per_second;
            latency[i * MOST_PLACES + j] = pair.nanoseconds;
            free(pair.block);
            free(pair.copy);
        }
    if (!good) {
        fprintf(stderr, "hoop-topo: --measure: no memory, or CPU%d and CPU%d do not run together in %d s\n",
                pair.cpu[0], pair.cpu[1], PATIENCE_S);
        return false;
    }
    put_table(out, "GB/s: the column's core copies what the row's core has written", place, count, rate);
    put_table(out, "ns: one way of a word from core to core", place, count, latency);
    put_classes(out, place, count);
    return true;
}
