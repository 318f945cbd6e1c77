// SPDX-License-Identifier: BSD-3-Clause
/* How a communicator comes into being.
 *
 * The ranks meet (boot), each tells who it is: host, cores, and whoever may be its host's first the name of a socket. When all have
 * come, the first rank of each host makes its board and passes it on, and every rank maps it, opens its transport and begins to be
 * watched. Then they agree once more, so that a failure on one is the same error on all. A rank that is alone meets nobody
 * and opens no socket.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "boot/boot.h"
#include "boot/share.h"
#include "comm/comm.h"
#include "comm/device.h"
#include "comm/device_grave.h"
#include "comm/device_links.h"
#include "comm/device_meet.h"
#include "comm/tune.h"
#include "mem/registry.h"
#include "mem/ring.h"
#include "plan/model.h"
#include "transports/transports.h"
#include "wire/cursor.h"

enum { CPU_WORDS = 16 };

/* What a rank tells the others. */
struct self {
    struct hoop_host_self host;
    uint64_t cpus[CPU_WORDS]; /* those it may run on */
    char share[HOOP_SHARE_NAME];
    struct hoop_model model; /* rank 0's is everybody's */
    int node;                /* NUMA; -1: unknown, or several */
    struct hoop_device_self device;
};

/* ---- who we are ---- */

static void read_cpus(uint64_t cpus[CPU_WORDS])
{
    cpu_set_t set;

    memset(cpus, 0, CPU_WORDS * sizeof *cpus);
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        CPU_SET(0, &set);
    for (int cpu = 0; cpu < CPU_SETSIZE && cpu < CPU_WORDS * 64; cpu++)
        if (CPU_ISSET((size_t)cpu, &set))
            cpus[cpu / 64] |= (uint64_t)1 << cpu % 64;
}

/* The constants bit by bit, so that all ranks compute with the same ones. */
static void put_model(struct hoop_writer *writer, const struct hoop_model *model)
{
    hoop_put_u8(writer, model->measured);
#define CONSTANT(name, unit, standard, least, most, help) hoop_put_f64(writer, model->name);
#include "plan/model.def"
#undef CONSTANT
}

static void get_model(struct hoop_reader *reader, struct hoop_model *model)
{
    model->measured = hoop_get_u8_range(reader, 0, 1);
#define CONSTANT(name, unit, standard, least, most, help) model->name = hoop_get_f64(reader);
#include "plan/model.def"
#undef CONSTANT
}

static void write_self(const struct self *self, struct hoop_boot_blob *blob)
{
    struct hoop_writer writer = hoop_writer(blob->data, sizeof blob->data);

    hoop_hosts_put(&writer, &self->host);
    for (int i = 0; i < CPU_WORDS; i++)
        hoop_put_u64(&writer, self->cpus[i]);
    hoop_put_bytes(&writer, self->share, sizeof self->share);
    put_model(&writer, &self->model);
    hoop_put_u32(&writer, (uint32_t)(self->node + 1));
    hoop_device_self_put(&writer, &self->device);
    blob->size = (uint16_t)hoop_writer_used(&writer);
}

static enum hoop_status read_self(const struct hoop_boot_blob *blob, int rank, struct self *self)
{
    struct hoop_reader reader = hoop_reader(blob->data, blob->size);

    memset(self, 0, sizeof *self);
    hoop_hosts_get(&reader, &self->host);
    for (int i = 0; i < CPU_WORDS; i++)
        self->cpus[i] = hoop_get_u64(&reader);
    hoop_get_bytes(&reader, self->share, sizeof self->share);
    self->share[sizeof self->share - 1] = 0;
    get_model(&reader, &self->model);
    self->node = (int)hoop_get_u32_range(&reader, 0, 1 << 20) - 1;
    hoop_device_self_get(&reader, &self->device);
    if (!hoop_reader_done(&reader) || !hoop_model_valid(&self->model))
        return hoop_fail(HOOP_ERR_SETUP, "rank %d sent a description of itself that cannot be read", rank);
    return HOOP_OK;
}

/* What the ranks have told, as far as set-up needs it. */
struct survey {
    struct self first, leader; /* rank 0, and the first rank of this host */
    int *node;                 /* NUMA node of each rank */
    bool crowded;              /* ranks take turns on the cores of this machine */
};

/* Do the ranks take turns on the same processors? Hosts may be containers of one machine. */
static bool share_cores(const struct hoop_comm *comm, const struct self *selves, int a, int b)
{
    return comm->hosts.of[a] == comm->hosts.of[b] || hoop_hosts_share_kernel(&selves[a].host, &selves[b].host);
}

/* The cores that the rank shares with others; they are `sharers`, with itself. */
static int count_cores(const struct hoop_comm *comm, const struct self *selves, int own, int *sharers)
{
    uint64_t cpus[CPU_WORDS] = {0};
    int cores = 0;

    *sharers = 0;
    for (int rank = 0; rank < comm->ranks; rank++) {
        if (!share_cores(comm, selves, own, rank))
            continue;
        ++*sharers;
        for (int i = 0; i < CPU_WORDS; i++)
            cpus[i] |= selves[rank].cpus[i];
    }
    for (int i = 0; i < CPU_WORDS; i++)
        cores += __builtin_popcountll(cpus[i]);
    return cores;
}

/* For the choice, which all ranks make alike, all machines are as crowded as the most crowded one. */
static void judge_cores(struct hoop_comm *comm, const struct self *selves, struct survey *survey)
{
    int sharers, cores = count_cores(comm, selves, comm->rank, &sharers);

    survey->crowded = cores < sharers;
    comm->choice.cores = comm->hosts.count == 1 ? cores : comm->ranks;
    for (int rank = 0, host = 0; host < comm->hosts.count && comm->hosts.count > 1; rank++) {
        if (comm->hosts.of[rank] != host) /* hosts are numbered in the order of their first ranks */
            continue;
        host++;
        cores = count_cores(comm, selves, rank, &sharers);
        const int fair = (comm->ranks * cores + sharers - 1) / sharers;
        if (fair < comm->choice.cores)
            comm->choice.cores = fair;
    }
}

static enum hoop_status look_around(struct hoop_comm *comm, const struct hoop_boot_blob *table, struct self *selves,
                                    struct survey *survey)
{
    enum hoop_status status = HOOP_OK;

    for (int rank = 0; rank < comm->ranks && status == HOOP_OK; rank++) {
        status = read_self(&table[rank], rank, &selves[rank]);
        comm->hosts.self[rank] = selves[rank].host;
        survey->node[rank] = selves[rank].node;
        comm->devices[rank] = selves[rank].device;
    }
    if (status == HOOP_OK)
        status = hoop_hosts_survey(comm);
    if (status != HOOP_OK)
        return status;
    survey->first = selves[0];
    survey->leader = selves[comm->hosts.leader];
    judge_cores(comm, selves, survey);
    return HOOP_OK;
}

/* ---- settings ---- */

static enum hoop_status apply_settings(struct hoop_comm *comm)
{
    const char *log = comm->settings.value[HOOP_SETTING_LOG].word;
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    int level = 0;

    while (level < 4 && strcmp(log, levels[level]) != 0)
        level++;
    if (level == 4)
        return hoop_fail(HOOP_ERR_SETUP, "HOOP_LOG=%s: give error, warn, info or debug", log);
    hoop_log_level_set((enum hoop_log_level)level);
    comm->channels = comm->settings.value[HOOP_SETTING_CHANNELS].empty
                         ? 1
                         : (int)hoop_setting_number(&comm->settings, HOOP_SETTING_CHANNELS);
    comm->slots = (int)hoop_setting_number(&comm->settings, HOOP_SETTING_SLOTS);
    comm->lanes = hoop_lanes_of(comm->channels);
    return hoop_choice_set(&comm->choice, &comm->settings);
}

/* Rank 0 reads the constants of the cost model and tells them to all; so the wisdom. */
static enum hoop_status read_files(struct hoop_comm *comm)
{
    const char *word = comm->settings.value[HOOP_SETTING_MODEL].word;

    const enum hoop_status status = comm->rank > 0 ? HOOP_OK : hoop_model_choose(&comm->choice.model, word, NULL, 0);
    return status == HOOP_OK ? hoop_tune_open(comm) : status;
}

static struct hoop_board_shape shape_of(const struct hoop_comm *comm)
{
    const size_t wish = hoop_setting_size(&comm->settings, HOOP_SETTING_HEAP),
                 most = ((size_t)1 << 44) / (size_t)comm->ranks;

    return (struct hoop_board_shape){.ranks = comm->ranks,
                                     .lanes = comm->lanes,
                                     .ring = hoop_ring_bytes(comm->slots, comm->choice.frame),
                                     .flat = comm->choice.flat_max,
                                     .stage = comm->choice.stage,
                                     .heap = wish < most ? wish : most};
}

/* What a rank does by itself before it meets the others. */
static enum hoop_status prepare(struct hoop_comm *comm, const struct hoop_comm *parent)
{
    comm->choice.model = hoop_model_builtin(); /* what this rank tells of itself can be read, whatever fails */
    const enum hoop_status status = hoop_device_choose(comm, parent);

    return status == HOOP_OK ? read_files(comm) : status;
}

/* ---- set-up with the others' addresses known ---- */

/* The leader's lifelines come by the numbers of this host's ranks. */
static void spread_lifelines(const struct hoop_comm *comm, int *lifeline)
{
    for (int place = comm->hosts.locals - 1; place > 0; place--) {
        const int rank = hoop_hosts_local(comm, place), sock = lifeline[place];
        lifeline[place] = -1;
        lifeline[rank] = sock;
    }
}

static enum hoop_status open_board(struct hoop_comm *comm, struct hoop_share *share, const char *leader,
                                   const unsigned char key[32], int cancel, int *lifeline, uint64_t deadline)
{
    const struct hoop_board_shape shape = shape_of(comm);
    const struct hoop_hosts *hosts = &comm->hosts;
    int segment = -1;

    if (comm->rank == hosts->leader) {
        enum hoop_status status = hoop_board_create(&comm->board, &shape, comm->rank);
        if (status == HOOP_OK)
            status = hoop_hosts_join(comm);
        if (status != HOOP_OK || hosts->locals == 1)
            return status;
        status = hoop_share_serve(share, key, hosts->locals, 0, comm->board->descriptor, cancel, lifeline, deadline);
        if (status == HOOP_OK)
            spread_lifelines(comm, lifeline);
        return status;
    }
    enum hoop_status status = hoop_share_fetch(leader, key, hosts->locals, hosts->place, cancel, &segment,
                                               &lifeline[hosts->leader], deadline);
    if (status == HOOP_OK)
        status = hoop_board_attach(&comm->board, &shape, comm->rank, segment);
    return status == HOOP_OK ? hoop_hosts_join(comm) : status;
}

static enum hoop_status open_domain(struct hoop_comm *comm)
{
    const struct hoop_domain_setup setup = {.rank = comm->rank,
                                            .ranks = comm->ranks,
                                            .lanes = comm->lanes,
                                            .frame = comm->choice.frame,
                                            .slots = comm->slots,
                                            .context = comm->board};

    return hoop_transport_shm.open(&setup, &comm->domain);
}

/* Everything of one rank that needs the board. */
static enum hoop_status equip(struct hoop_comm *comm, bool crowded)
{
    const struct hoop_settings *settings = &comm->settings;
    const size_t ranks = (size_t)comm->ranks;

    comm->links = hoop_calloc(ranks * (size_t)comm->lanes, sizeof(struct hoop_link *));
    if (comm->links == NULL)
        return HOOP_ERR_MEMORY;
    comm->recorder = hoop_board_flight(comm->board, comm->rank);
    enum hoop_status status =
        hoop_flat_init(&comm->flat, comm->board, hoop_choice_direct_least(&comm->choice, comm->ranks));
    if (status == HOOP_OK)
        status = hoop_heap_new(&comm->heap, comm->board);
    if (status == HOOP_OK)
        status = hoop_exec_new(&comm->exec);
    hoop_wait_init(&comm->wait, comm->board, hoop_setting_number(settings, HOOP_SETTING_SPIN), crowded,
                   hoop_setting_number(settings, HOOP_SETTING_LATE),
                   hoop_setting_number(settings, HOOP_SETTING_TIMEOUT));
    comm->wait.spread.on = crowded && hoop_setting_number(settings, HOOP_SETTING_SPREAD) != 0;
    if (status == HOOP_OK && comm->hosts.domain)
        status = hoop_wait_add(&comm->wait, comm->hosts.domain->transport->descriptor(comm->hosts.domain));
    return status == HOOP_OK && comm->ranks > 1 ? open_domain(comm) : status;
}

static void close_lifelines(int *lifeline, int ranks)
{
    for (int rank = 0; rank < ranks; rank++)
        if (lifeline[rank] >= 0)
            close(lifeline[rank]);
}

/* With everybody's word known. */
static enum hoop_status settle_in(struct hoop_comm *comm, struct survey *survey, const unsigned char key[32],
                                  int cancel, struct hoop_share *share, int *lifeline, uint64_t deadline)
{
    enum hoop_status status = hoop_device_survey(comm);

    comm->choice.model = survey->first.model;
    hoop_hosts_adjust(comm);
    if (status == HOOP_OK)
        status = hoop_comm_group(comm, comm->hosts.count > 1 ? comm->hosts.of : survey->node);
    if (status == HOOP_OK)
        status = open_board(comm, share, survey->leader.share, key, cancel, lifeline, deadline);
    if (status == HOOP_OK)
        status = equip(comm, survey->crowded);
    if (status == HOOP_OK)
        status = hoop_watch_start(&comm->watch, comm->board, lifeline,
                                  hoop_setting_number(&comm->settings, HOOP_SETTING_SILENT), comm->hosts.far);
    return status;
}

/* Between meeting and agreeing. */
static enum hoop_status set_up(struct hoop_comm *comm, const struct hoop_unique_id *id, struct hoop_boot *boot,
                               struct hoop_share *share, const struct hoop_boot_blob *table, uint64_t deadline)
{
    const size_t ranks = (size_t)comm->ranks;
    int *lifeline = hoop_calloc(2 * ranks, sizeof *lifeline);
    struct self *selves = hoop_calloc(ranks, sizeof *selves);
    struct survey survey = {.node = lifeline + ranks};
    unsigned char key[32];

    comm->devices = hoop_calloc(ranks, sizeof *comm->devices);
    comm->hosts.of = hoop_calloc(ranks, sizeof *comm->hosts.of);
    comm->hosts.self = hoop_calloc(ranks, sizeof *comm->hosts.self);
    enum hoop_status status =
        lifeline && selves && comm->devices && comm->hosts.of && comm->hosts.self ? HOOP_OK : HOOP_ERR_MEMORY;
    if (status != HOOP_OK)
        goto out;
    for (int rank = 0; rank < comm->ranks; rank++)
        lifeline[rank] = -1;
    if (HOOP_FAULT_FAILS(TABLE))
        status = hoop_fail(HOOP_ERR_MEMORY, "the set-up fails, as the test has asked for");
    hoop_boot_key(id, "share", key);
    if (status == HOOP_OK)
        status = look_around(comm, table, selves, &survey);
    if (status == HOOP_OK)
        status = settle_in(comm, &survey, key, hoop_boot_descriptor(boot), share, lifeline, deadline);
    if (status != HOOP_OK)
        close_lifelines(lifeline, comm->ranks);
    else
        status = hoop_watch_await(comm->watch, hoop_boot_descriptor(boot), deadline);
out:
    hoop_free(selves);
    hoop_free(lifeline);
    return status;
}

static enum hoop_status meet(struct hoop_comm *comm, const struct hoop_unique_id *id, const struct hoop_comm *parent)
{
    const uint64_t deadline =
        hoop_deadline(parent && parent->patience > 0 ? parent->patience
                                                     : hoop_setting_number(&comm->settings, HOOP_SETTING_INIT_TIMEOUT));
    struct hoop_boot_blob *table = hoop_calloc((size_t)comm->ranks, sizeof *table), mine;
    struct hoop_share *share = NULL;
    struct hoop_boot *boot = NULL;
    struct self self = {.share = ""};
    char why[HOOP_ERROR_TEXT] = "";
    enum hoop_status status = table ? HOOP_OK : HOOP_ERR_MEMORY;

    enum hoop_status read = prepare(comm, parent); /* a failure is told to all, below */
    if (read == HOOP_OK)
        read = hoop_hosts_open(comm, id);
    if (read != HOOP_OK)
        snprintf(why, sizeof why, "%s", hoop_error_text());
    if (status == HOOP_OK && (comm->rank == 0 || comm->hosts.domain)) /* it may be its host's first */
        status = hoop_share_open(&share);
    if (status != HOOP_OK)
        goto out;
    hoop_hosts_tell(comm, &self.host);
    read_cpus(self.cpus);
    self.node = hoop_comm_node(self.cpus, CPU_WORDS);
    self.model = comm->choice.model;
    hoop_device_tell(comm, &self.device);
    if (share)
        snprintf(self.share, sizeof self.share, "%s", hoop_share_name(share));
    write_self(&self, &mine);
    status = hoop_boot_join(&boot, id, comm->ranks, comm->rank, &comm->settings, &mine, table, deadline);
    if (status != HOOP_OK)
        goto out;
    status = read == HOOP_OK ? set_up(comm, id, boot, share, table, deadline) : read;
    status = hoop_boot_agree(boot, status, read == HOOP_OK ? NULL : why, deadline);
out:
    hoop_boot_close(boot);
    hoop_share_close(share);
    hoop_free(table);
    return status;
}

static enum hoop_status be_alone(struct hoop_comm *comm, const struct hoop_comm *parent)
{
    comm->choice.cores = 1;
    comm->hosts = (struct hoop_hosts){.count = 1, .locals = 1};
    enum hoop_status status = prepare(comm, parent);
    if (status == HOOP_OK)
        status = open_board(comm, NULL, NULL, NULL, -1, NULL, 0);
    return status == HOOP_OK ? equip(comm, false) : status;
}

/* ---- fork ---- */

static unsigned long forks;

static void count_fork(void)
{
    forks++;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

unsigned long hoop_comm_forks(void)
{
    return forks;
}

/* ---- making and freeing ---- */

enum hoop_status hoop_comm_make(struct hoop_comm **comm, int ranks, const struct hoop_unique_id *id, int rank,
                                const struct hoop_comm *parent)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct hoop_comm *new = hoop_calloc_aligned(64, 1, sizeof *new);

    if (new == NULL)
        return HOOP_ERR_MEMORY;
    pthread_once(&once, watch_forks);
    new->rank = rank;
    new->ranks = ranks;
    new->forks = forks;
    pthread_mutex_init(&new->order, NULL);
    pthread_cond_init(&new->turn, NULL);
    pthread_mutex_init(&new->error_lock, NULL);
    enum hoop_status status = hoop_settings_read(&new->settings);
    if (status == HOOP_OK)
        status = apply_settings(new);
    if (status == HOOP_OK)
        status = ranks == 1 ? be_alone(new, parent) : meet(new, id, parent);
    if (status == HOOP_OK)
        status = hoop_tune_share(new);
    if (new->tune) /* measured plans compete */
        new->choice.stage = 0;
    new->flat.stages = new->choice.stage > 0;
    if (status == HOOP_OK)
        status = hoop_device_agree(new, id);
    if (status != HOOP_OK) {
        hoop_comm_free(new);
        return status;
    }
    *comm = new;
    return HOOP_OK;
}

void hoop_comm_drop_links(struct hoop_comm *comm)
{
    if (comm->links == NULL)
        return;
    for (int i = 0; i < comm->ranks * comm->lanes; i++)
        if (comm->links[i]) {
            comm->links[i]->transport->disconnect(comm->links[i]);
            comm->links[i] = NULL;
        }
}

void hoop_comm_free(struct hoop_comm *comm)
{
    const struct hoop_board *board = comm->board;

    hoop_stream_destroy(comm->helper);
    hoop_handle_orphan_all(comm);
    hoop_comm_drop_links(comm);
    hoop_free(comm->links);
    hoop_operators_free(comm);
    if (comm->domain)
        comm->domain->transport->close(comm->domain);
    hoop_device_free(comm);
    hoop_wait_free(&comm->wait);
    hoop_watch_stop(comm->watch); /* peers see that we have left: nothing of theirs is touched from here on */
    hoop_hosts_close(comm);
    hoop_registry_clear(comm->heap);
    hoop_heap_free(comm->heap);
    hoop_board_close(comm->board);
    hoop_device_graves_look(board);
    hoop_plan_cache_clear(&comm->plans);
    hoop_groups_free(comm->groups);
    hoop_free(comm->orders);
    hoop_exec_free(comm->exec);
    hoop_tune_free(comm);
    hoop_flat_free(&comm->flat);
    hoop_free(comm->devices);
    pthread_mutex_destroy(&comm->order);
    pthread_cond_destroy(&comm->turn);
    pthread_mutex_destroy(&comm->error_lock);
    hoop_free(comm);
}
