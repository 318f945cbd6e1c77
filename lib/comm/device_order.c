// SPDX-License-Identifier: BSD-3-Clause
/* The orders in which the ranks' devices stand on the machine's rings, for calls that run as kernels.
 *
 * Rank 0 looks at the topology, that of HOOP_TOPO_FILE or of this machine, which a process reads once, with the facts of HOOP_TOPO_FACTS over it, and searches for rings through the
 * ranks' devices, known by their bus ids. All get the orders from it, so they are the same on all ranks whatever each of them sees. Where
 * there are none plans go by the ranks' numbers, and comm->device_way says why.
 */
#include "comm/device_order.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "comm/device_meet.h"
#include "topo/model.h"

enum { MOST = HOOP_MAX_CHANNELS * HOOP_TOPO_SEARCH_DEVICES, WHY = 160 };

/* What rank 0 tells. */
struct told {
    uint8_t failed; /* HOOP_TOPO_FILE or HOOP_TOPO_FACTS cannot be had: why */
    uint8_t orders;
    uint8_t rank[MOST];
    char why[WHY]; /* no orders: the reason; "": none is needed */
};

static struct hoop_topo *machine;
static char machine_error[WHY];

static void read_machine(void)
{
    if (hoop_topo_detect_devices(&machine) != HOOP_OK)
        snprintf(machine_error, sizeof machine_error, "%s", hoop_error_text());
}

/* The topology to look at; *own: it is to be freed. NULL: the reason is told. */
static struct hoop_topo *look(const struct hoop_comm *comm, struct told *told, bool *own)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct hoop_setting_value *file = &comm->settings.value[HOOP_SETTING_TOPO_FILE],
                                    *facts = &comm->settings.value[HOOP_SETTING_TOPO_FACTS];
    struct hoop_topo *topo = NULL;

    *own = !file->empty || !facts->empty;
    if (!*own) {
        pthread_once(&once, read_machine);
        snprintf(told->why, WHY, "%s", machine_error);
        return machine;
    }
    enum hoop_status status = file->empty ? hoop_topo_detect_devices(&topo) : hoop_topo_load(&topo, file->word);
    if (status == HOOP_OK && !facts->empty)
        status = hoop_topo_override(topo, facts->word);
    if (status != HOOP_OK) {
        told->failed = 1;
        snprintf(told->why, WHY, "%s", hoop_error_text());
        hoop_topo_free(topo);
        topo = NULL;
    }
    return topo;
}

/* The GPU nodes of all ranks; false: some has none, as is told. */
static bool find_nodes(const struct hoop_comm *comm, const struct hoop_topo *topo, bool *shown, int *node,
                       struct told *told)
{
    for (int rank = 0; rank < comm->ranks; rank++) {
        const char *name = comm->devices[rank].bus;
        struct hoop_topo_bus bus = {.known = false};

        node[rank] = hoop_topo_parse_bus(name, &bus) ? hoop_topo_at_bus(topo, &bus) : -1;
        if (node[rank] < 0 || hoop_topo_node(topo, node[rank])->kind != HOOP_TOPO_GPU || shown[node[rank]]) {
            snprintf(told->why, WHY,
                     node[rank] >= 0 && shown[node[rank]] ? "rank %d shares its device %s"
                                                          : "the device of rank %d, %s, is no GPU of the topology",
                     rank, name);
            return false;
        }
        shown[node[rank]] = true;
    }
    return true;
}

static void write_orders(const struct hoop_topo_channels *found, const int *node, int ranks, struct told *told)
{
    told->orders = (uint8_t)(found->channels < HOOP_MAX_CHANNELS ? found->channels : HOOP_MAX_CHANNELS);
    for (int i = 0; i < told->orders; i++)
        for (int place = 0; place < ranks; place++)
            for (int rank = 0; rank < ranks; rank++)
                if (node[rank] == found->channel[i].node[place])
                    told->rank[i * ranks + place] = (uint8_t)rank;
}

static enum hoop_status search(const struct hoop_comm *comm, const struct hoop_topo *topo, struct told *told)
{
    int node[HOOP_TOPO_SEARCH_DEVICES], nodes = 0;
    struct hoop_topo_channels *found = hoop_calloc(1, sizeof *found);

    while (hoop_topo_node(topo, nodes) != NULL)
        nodes++;
    bool *shown = hoop_calloc((size_t)nodes, sizeof *shown);
    const struct hoop_topo_wanted wanted = {.shape = HOOP_TOPO_RING, .hosts = 1, .shown = shown};
    enum hoop_status status = found != NULL && shown != NULL ? HOOP_OK : HOOP_ERR_MEMORY;
    if (status == HOOP_OK && find_nodes(comm, topo, shown, node, told)) {
        status = hoop_topo_search(topo, &wanted, found);
        if (status == HOOP_OK)
            write_orders(found, node, comm->ranks, told);
        else if (status == HOOP_ERR_UNSUPPORTED)
            snprintf(told->why, WHY, "%s", hoop_error_text());
    }
    hoop_free(shown);
    hoop_free(found);
    return status == HOOP_ERR_UNSUPPORTED ? HOOP_OK : status;
}

/* Rank 0's work. Two ranks have one order. */
static void find(const struct hoop_comm *comm, struct told *told)
{
    bool own = false;

    *told = (struct told){.orders = 0};
    if (comm->ranks < 3)
        return;
    if (comm->ranks > HOOP_TOPO_SEARCH_DEVICES) {
        snprintf(told->why, WHY, "rings join %d devices at most", HOOP_TOPO_SEARCH_DEVICES);
        return;
    }
    struct hoop_topo *topo = look(comm, told, &own);
    if (topo != NULL && search(comm, topo, told) != HOOP_OK) {
        told->failed = 1;
        snprintf(told->why, WHY, "%s", hoop_error_text());
    }
    if (own)
        hoop_topo_free(topo);
}

/* The texts go into JSON. */
static void make_plain(char *text)
{
    text[WHY - 1] = 0;
    for (char *c = text; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
            *c = '\'';
}

/* Into comm->device_way, whose text goes on. */
static void explain(struct hoop_comm *comm, const struct told *told)
{
    size_t used = strlen(comm->device_way);
    char *to = comm->device_way;
    const size_t size = sizeof comm->device_way;

    if (told->orders == 0) {
        if (told->why[0])
            snprintf(to + used, size - used, "; in the order of ranks: %s", told->why);
        return;
    }
    used += (size_t)snprintf(to + used, size - used, "; in the order of %d ring%s of the topology:", told->orders,
                             told->orders == 1 ? "" : "s");
    for (int place = 0; place < comm->ranks && used < size; place++)
        used += (size_t)snprintf(to + used, size - used, " %d", told->rank[place]);
    if (told->orders > 1 && used < size)
        snprintf(to + used, size - used, " and so on");
}

/* Keep them as plans want them, if they are orders. */
static enum hoop_status keep(struct hoop_comm *comm, const struct told *told)
{
    const int ranks = comm->ranks, orders = told->orders;
    struct hoop_orders *kept = hoop_calloc(1, sizeof *kept + (size_t)(orders * ranks) * sizeof(int));

    if (kept == NULL)
        return HOOP_ERR_MEMORY;
    int *rank = (int *)(void *)(kept + 1);
    *kept = (struct hoop_orders){.ranks = ranks, .orders = orders, .rank = rank};
    for (int i = 0; i < orders; i++) {
        uint32_t seen = 0;

        for (int place = 0; place < ranks; place++) {
            rank[i * ranks + place] = told->rank[i * ranks + place];
            seen |= rank[i * ranks + place] < ranks ? 1u << rank[i * ranks + place] : 0;
        }
        if (seen != (1u << ranks) - 1) {
            hoop_free(kept);
            return hoop_fail(HOOP_ERR_INTERNAL, "rank 0 told an order that does not name all ranks once");
        }
    }
    comm->orders = kept;
    return HOOP_OK;
}

enum hoop_status hoop_device_order(struct hoop_comm *comm)
{
    struct told *told = hoop_calloc(1, sizeof *told);

    if (told == NULL)
        return hoop_comm_conclude(comm, HOOP_ERR_MEMORY);
    if (comm->rank == 0)
        find(comm, told);
    enum hoop_status status = hoop_comm_run_part(&(struct hoop_comm_call){.comm = comm,
                                                                          .coll = HOOP_BROADCAST,
                                                                          .type = HOOP_U8,
                                                                          .op = HOOP_OPS,
                                                                          .root = 0,
                                                                          .count = sizeof *told,
                                                                          .in = told,
                                                                          .out = told});
    make_plain(told->why);
    if (status == HOOP_OK && told->failed) {
        status = hoop_fail(HOOP_ERR_SETUP, "rank 0 cannot use the topology: %s", told->why);
        hoop_free(told);
        return status;
    }
    if (status == HOOP_OK && told->orders > 0 && told->orders <= HOOP_MAX_CHANNELS && comm->ranks <= 16)
        status = keep(comm, told);
    if (status == HOOP_OK)
        explain(comm, told);
    hoop_free(told);
    return status == HOOP_OK ? HOOP_OK : hoop_comm_conclude(comm, status);
}
