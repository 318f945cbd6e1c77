// SPDX-License-Identifier: BSD-3-Clause
/* What calls on device memory as kernels must give beside right sums: the bits of the same calls on host memory, and reports of who is late. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_help.h"
#include "harness.h"
#include "hoop/plan.h"
#include "tsan.h"

enum { RANKS = 3, SPACE = 1 << 17, CAP = 60 };

struct place {
    struct cuda_help cuda;
    unsigned char *host, *expected, *device;
};

static void open_place(struct place *place, struct hoop_comm *comm)
{
    int ordinal = -1;

    ck_assert_int_eq(hoop_comm_device(comm, &ordinal), HOOP_OK);
    cuda_open(&place->cuda, ordinal, 2);
    place->host = cuda_host(&place->cuda, SPACE);
    place->expected = cuda_host(&place->cuda, SPACE);
    place->device = cuda_device(&place->cuda, SPACE);
}

static void settings(void)
{
    cuda_devices(RANKS);
    setenv("HOOP_DEVICE", "cuda", 1);
    setenv("HOOP_DETERMINISTIC", "1", 1);
}

static bool went(const struct hoop_comm *comm, const char *way)
{
    char name[HARNESS_PLAN];

    harness_last_plan(comm, name);
    if (strstr(name, way) == NULL)
        fprintf(stderr, "rank %d: the last call went %s, not %s\n", hoop_comm_rank(comm), name, way);
    return strstr(name, way) != NULL;
}

/* ---- numbers ---- */

/* Any bits but for floats' infinities and NaN, about which hoop.h promises less. */
static void fill(unsigned char *memory, size_t bytes, unsigned seed)
{
    uint64_t state = seed * 2654435761u + 1;

    for (size_t i = 0; i < bytes; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        memory[i] = (unsigned char)((state >> 56) & (i % 2 ? 0x3f : 0x37));
    }
}

struct sum {
    enum hoop_coll coll;
    enum hoop_type type;
    enum hoop_op op;
    size_t count;
    bool in_place;
};

static enum hoop_status combine(const struct sum *c, const void *in, void *out, struct hoop_comm *comm,
                                hoop_stream *stream)
{
    if (c->coll == HOOP_ALL_REDUCE)
        return hoop_all_reduce(in, out, c->count, c->type, c->op, comm, stream);
    if (c->coll == HOOP_REDUCE)
        return hoop_reduce(in, out, c->count, c->type, c->op, 1, comm, stream);
    return hoop_reduce_scatter(in, out, c->count, c->type, c->op, comm, stream);
}

/* The same call on host memory and on device memory: the same bits. */
static int same_bits(const struct sum *c, struct place *place, struct hoop_comm *comm, hoop_cu_stream stream)
{
    const size_t element = hoop_type_size(c->type), vector = c->count * element * RANKS, half = SPACE / 2;
    const int rank = hoop_comm_rank(comm);

    fill(place->host, vector, (unsigned)rank + 1);
    memset(place->host + half, 0xa5, half);
    memcpy(place->expected, place->host, SPACE);
    cuda_copy(&place->cuda, place->device, place->host, SPACE, stream);
    cuda_synchronize(&place->cuda, stream);
    const size_t to = c->in_place ? 0 : half;
    HARNESS_EXPECT(combine(c, place->expected, place->expected + to, comm, NULL) == HOOP_OK);
    HARNESS_EXPECT(combine(c, place->device, place->device + to, comm, (hoop_stream *)(void *)stream) == HOOP_OK);
    HARNESS_EXPECT(went(comm, "/kernel/"));
    cuda_copy(&place->cuda, place->host, place->device, SPACE, stream);
    cuda_synchronize(&place->cuda, stream);
    const size_t gets = c->coll == HOOP_REDUCE && rank != 1 ? 0 : c->count * element;
    for (size_t i = 0; i < SPACE; i++)
        if (place->host[i] != place->expected[i] && (c->coll != HOOP_REDUCE || gets > 0)) {
            fprintf(stderr, "rank %d, coll %d, %s, op %d, count %zu, in place %d: byte %zu is %02x, on the host %02x\n",
                    rank, (int)c->coll, hoop_type_name(c->type), (int)c->op, c->count, c->in_place, i, place->host[i],
                    place->expected[i]);
            hoop_comm_abort(comm);
            return 1;
        }
    return 0;
}

static int same_bits_of(enum hoop_type type, enum hoop_op op, struct place *place, struct hoop_comm *comm)
{
    static const enum hoop_coll colls[] = {HOOP_ALL_REDUCE, HOOP_REDUCE, HOOP_REDUCE_SCATTER};
    static const size_t counts[] = {1, 77, 2000};
    int failed = 0;

    for (int i = 0; i < 3 && !failed; i++)
        for (int j = 0; j < 3 && !failed; j++) {
            const struct sum c = {colls[i], type, op, counts[j], colls[i] == HOOP_ALL_REDUCE && j == 1};
            failed = same_bits(&c, place, comm, j ? place->cuda.stream[j - 1] : NULL);
        }
    return failed;
}

/* Small floats are summed in f32 and rounded once. */
static int small_floats(int rank, struct hoop_comm *comm, void *argument)
{
    static const enum hoop_type types[] = {HOOP_F16, HOOP_BF16, HOOP_F8E4M3, HOOP_F8E5M2};
    static const enum hoop_op ops[] = {HOOP_SUM, HOOP_AVG, HOOP_PROD, HOOP_MAX};
    struct place place;
    int failed = 0;

    (void)rank, (void)argument;
    open_place(&place, comm);
    for (int t = 0; t < 4 && !failed; t++)
        for (int o = 0; o < 4 && !failed; o++)
            failed = same_bits_of(types[t], ops[o], &place, comm);
    failed |= hoop_comm_destroy(comm) != HOOP_OK;
    cuda_close(&place.cuda);
    return failed;
}

/* The value as the type's element. */
static void scalar_of(enum hoop_type type, int value, void *scalar)
{
    const float as_f32 = (float)value / 4;
    const double as_f64 = (double)value / 4;

    if (type == HOOP_F32)
        memcpy(scalar, &as_f32, sizeof as_f32);
    else if (type == HOOP_F64)
        memcpy(scalar, &as_f64, sizeof as_f64);
    else if (type == HOOP_F16)
        memcpy(scalar, &(uint16_t){(uint16_t)(0x3c00 + 0x40 * value)}, 2);
    else if (type == HOOP_F8E4M3)
        memcpy(scalar, &(uint8_t){(uint8_t)(0x38 + value)}, 1);
    else
        memcpy(scalar, &(int64_t){value}, hoop_type_size(type));
}

static int premultiplied(int rank, struct hoop_comm *comm, void *argument)
{
    static const enum hoop_type types[] = {HOOP_F32, HOOP_F64, HOOP_F16, HOOP_F8E4M3, HOOP_I32, HOOP_U64};
    struct place place;
    int failed = 0;

    (void)argument;
    open_place(&place, comm);
    for (int t = 0; t < 6 && !failed; t++) {
        uint64_t scalar = 0;
        enum hoop_op op;
        scalar_of(types[t], rank + 2, &scalar);
        HARNESS_EXPECT(hoop_op_premul_create(&op, &scalar, types[t], comm) == HOOP_OK);
        failed = same_bits_of(types[t], op, &place, comm);
        HARNESS_EXPECT(failed || hoop_op_destroy(op, comm) == HOOP_OK);
    }
    failed |= hoop_comm_destroy(comm) != HOOP_OK;
    cuda_close(&place.cuda);
    return failed;
}

/* Blocks of different sizes, some empty, with gaps, cut into several slices: as on the host. */
static int uneven_blocks(int rank, struct hoop_comm *comm, void *argument)
{
    static const size_t counts[][RANKS] = {{0, 7001, 1}, {3, 0, 0}, {5000, 5001, 4999}, {0, 0, 0}};
    struct place place;
    int failed = 0;

    (void)argument;
    open_place(&place, comm);
    for (int i = 0; i < 8 && !failed; i++) {
        const size_t *count = counts[i / 2], first[RANKS] = {20, 12000, 6000};
        const size_t own = i % 2 ? first[rank] : 25000; /* in place by turns */
        hoop_cu_stream stream = i % 3 ? place.cuda.stream[i % 3 - 1] : NULL;
        fill(place.host, SPACE, (unsigned)rank + 1);
        memcpy(place.expected, place.host, SPACE);
        cuda_copy(&place.cuda, place.device, place.host, SPACE, stream);
        cuda_synchronize(&place.cuda, stream);
        HARNESS_EXPECT(hoop_all_gatherv(place.expected + 4 * own, count[rank], place.expected, count, first, HOOP_I32,
                                        comm, NULL) == HOOP_OK);
        HARNESS_EXPECT(hoop_all_gatherv(place.device + 4 * own, count[rank], place.device, count, first, HOOP_I32, comm,
                                        (hoop_stream *)(void *)stream) == HOOP_OK);
        HARNESS_EXPECT(went(comm, "/kernel/"));
        cuda_copy(&place.cuda, place.host, place.device, SPACE, stream);
        cuda_synchronize(&place.cuda, stream);
        failed = memcmp(place.host, place.expected, SPACE) != 0;
        if (failed)
            fprintf(stderr, "rank %d: blocks of case %d differ from the host's\n", rank, i);
    }
    failed |= hoop_comm_destroy(comm) != HOOP_OK;
    cuda_close(&place.cuda);
    return failed;
}

static const struct {
    const char *name;
    harness_thread_body body;
} numbers[] = {{"small floats", small_floats}, {"premultiplied sums", premultiplied}, {"uneven blocks", uneven_blocks}};

static int numbers_of_process(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);

    return comm ? numbers[*(int *)self->argument].body(self->rank, comm, NULL) : 1;
}

START_TEST(bits_as_on_the_host)
{
    int which = _i;

    settings();
    setenv("HOOP_SLICE", "8K", 1);
    harness_run(RANKS, numbers_of_process, &which, CAP);
    setenv("FAKECUDA_DELAY", "20", 1);
    harness_threads(RANKS, numbers[_i].body, NULL);
}
END_TEST

/* ---- lateness ---- */

/* How long others wait before they call a rank late, and how long it is. Sanitized ranks are slow: none may seem late that is not. */
#define PATIENCE (THIN ? "1" : "0.5")
enum { LATE_US = THIN ? 4500000 : 2000000 };

static void sleep_in_stream(void *data)
{
    (void)data;
    usleep(LATE_US);
}

/* Rank 2 comes late, or its stream does. */
struct late {
    bool stream, fails;
};

static int come_late(struct harness_rank *self)
{
    const struct late *late = self->argument;
    char line[512], path[] = "/tmp/hoop-late-XXXXXX";
    struct place place;
    bool reported = false, waits = false;
    FILE *log = NULL;

    if (self->rank == 0) { /* catch our own log */
        const int file = mkstemp(path);
        dup2(file, STDERR_FILENO);
        log = fdopen(file, "r");
        unlink(path);
    }
    struct hoop_comm *comm = harness_join(self);
    if (comm == NULL)
        return 1;
    open_place(&place, comm);
    hoop_cu_stream stream = place.cuda.stream[0];
    if (self->rank == 2 && late->stream) {
        hoop_cuda_enter(place.cuda.cuda);
        place.cuda.cuda->driver->cuLaunchHostFunc(stream, sleep_in_stream, NULL);
        hoop_cuda_leave(place.cuda.cuda);
    } else if (self->rank == 2)
        usleep(LATE_US);
    hoop_all_reduce(place.device, place.device, 3000, HOOP_F32, HOOP_SUM, comm, (hoop_stream *)(void *)stream);
    cuda_synchronize(&place.cuda, stream);
    enum hoop_status status = hoop_comm_async_error(comm);
    if (log) {
        rewind(log);
        while (fgets(line, sizeof line, log)) {
            reported |= strstr(line, "(all_reduce") && strstr(line, "have not begun it on their devices yet: 2");
            waits |= strstr(line, "lane 0 of call") != NULL;
        }
    }
    harness_tell(self, status, comm);
    const bool good = late->fails ? status == HOOP_ERR_TIMEOUT && strstr(self->report->text, "rank 2") &&
                                        strstr(self->report->text, "late")
                                  : status == HOOP_OK && (!log || (reported && waits));
    hoop_comm_destroy(comm);
    cuda_close(&place.cuda);
    return good ? 0 : 1;
}

START_TEST(late_ranks)
{
    struct late late = {.stream = _i % 2 == 1, .fails = _i / 2 == 1};

    if (_i > 4) /* on three hosts: what kernels have begun is told there, too */
        setenv("HOOP_TRANSPORTS", "tcp", 1);
    settings();
    setenv(late.fails ? "HOOP_TIMEOUT" : "HOOP_LATE", PATIENCE, 1);
    harness_run(RANKS, come_late, &late, CAP);
}
END_TEST

/* Two ranks that wait for each other in different calls: no frame ever comes, so only their records show it. */
static int wait_for_each_other(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);
    struct place place;

    if (comm == NULL)
        return 1;
    open_place(&place, comm);
    hoop_cu_stream stream = place.cuda.stream[0];
    hoop_broadcast(place.device, place.device, 100, HOOP_F32, 1 - self->rank, comm, (hoop_stream *)(void *)stream);
    cuda_synchronize(&place.cuda, stream);
    const enum hoop_status status = hoop_comm_async_error(comm);
    harness_tell(self, status, comm);
    const bool told = strstr(self->report->text, "root 0") && strstr(self->report->text, "root 1");
    hoop_comm_destroy(comm);
    cuda_close(&place.cuda);
    return status == HOOP_ERR_MISMATCH && told ? 0 : 1;
}

START_TEST(calls_without_a_frame_differ)
{
    settings();
    harness_run(2, wait_for_each_other, NULL, CAP);
}
END_TEST

/* ---- several communicators on a device ---- */

/* How the calls of a second communicator go on devices that hold so many blocks, of which each channel takes four. */
static const struct {
    const char *blocks, *channels;
    const char *first, *second, *reason;
} rooms[] = {{"8", "1", "/kernel/1ch/", "/kernel/1ch/", ""},
             {"7", "1", "/kernel/1ch/", "staged/", "room for 3 more lanes"},
             {"13", "2", "/kernel/2ch/", "/kernel/1ch/", ""}};
enum { ROOMS = sizeof rooms / sizeof *rooms };

/* One call on each, in the other order on the other rank, on two streams: kernels of both wait at the same time. */
static int call_crosswise(struct hoop_comm *const both[2], struct place *place, const char *first, const char *second)
{
    struct hoop_comm *comm = both[0];
    float *data[2] = {(float *)(void *)place->device, (float *)(void *)(place->device + SPACE / 2)};

    for (int i = 0; i < 2; i++) {
        const int which = (i + hoop_comm_rank(comm)) % 2;
        HARNESS_EXPECT(hoop_all_reduce(data[which], data[which], 5000, HOOP_F32, HOOP_SUM, both[which],
                                       (hoop_stream *)(void *)place->cuda.stream[which]) == HOOP_OK);
    }
    for (int i = 0; i < 2; i++)
        cuda_synchronize(&place->cuda, place->cuda.stream[i]);
    for (int i = 0; i < 2; i++)
        HARNESS_EXPECT(hoop_comm_async_error(both[i]) == HOOP_OK && went(both[i], i ? second : first));
    return 0;
}

static int share_device(int rank, struct hoop_comm *comm, void *argument)
{
    const int room = *(int *)argument;
    char *text = malloc(HOOP_EXPLAIN_TEXT);
    struct hoop_comm *second = NULL, *third = NULL;
    struct place place;

    open_place(&place, comm);
    HARNESS_EXPECT(hoop_comm_split(comm, 0, rank, &second) == HOOP_OK);
    HARNESS_EXPECT(hoop_explain(second, "all_reduce", 4096, 0, text, HOOP_EXPLAIN_TEXT) == HOOP_OK);
    HARNESS_EXPECT(strstr(text, rooms[room].reason) != NULL);
    int failed = 0;
    for (int i = 0; i < 10 && !failed; i++)
        failed = call_crosswise((struct hoop_comm *[]){comm, second}, &place, rooms[room].first, rooms[room].second);
    HARNESS_EXPECT(hoop_comm_destroy(second) == HOOP_OK); /* its blocks are free again */
    HARNESS_EXPECT(hoop_comm_split(comm, 0, rank, &third) == HOOP_OK);
    failed |= call_crosswise((struct hoop_comm *[]){comm, third}, &place, rooms[room].first, rooms[room].second);
    failed |= hoop_comm_destroy(third) != HOOP_OK || hoop_comm_destroy(comm) != HOOP_OK;
    free(text);
    cuda_close(&place.cuda);
    return failed;
}

START_TEST(communicators_share_a_device)
{
    int room = _i;

    settings();
    setenv("FAKECUDA_SMS", "1", 1);
    setenv("FAKECUDA_BLOCKS", rooms[_i].blocks, 1);
    setenv("HOOP_CHANNELS", rooms[_i].channels, 1);
    harness_threads(2, share_device, &room);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("calls as kernels");
    TCase *all = tcase_create("all");

    (void)argc;
    cuda_driver_or_skip(argv);
    if (!cuda_suits("calls as kernels", RANKS, false)) /* ranks that share a device are staged */
        return 77;
    tcase_set_timeout(all, CAP + 20);
    tcase_add_loop_test(all, bits_as_on_the_host, 0, sizeof numbers / sizeof *numbers);
    tcase_add_loop_test(all, late_ranks, 0, 4);
    if (cuda_suits("late_ranks of several hosts", RANKS, true))
        tcase_add_loop_test(all, late_ranks, 5, 6);
    if (cuda_suits("communicators_share_a_device", 2, true))
        tcase_add_loop_test(all, communicators_share_a_device, 0, ROOMS);
    tcase_add_test(all, calls_without_a_frame_differ);
    suite_add_tcase(suite, all);
    return harness_suite(suite);
}
