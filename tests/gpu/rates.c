// SPDX-License-Identifier: BSD-3-Clause
/* What the kernels reach on one device against the device's own copy (cuMemcpyAsync), all by turns in the same run.
 *
 *     rates [--json FILE] [--seconds S] [--try]
 *
 * A rate counts every byte that is read or written: 2 for each of a copy, 3 of a reduction. Each kernel runs in batches of a few
 * milliseconds between two looks at the clock; one round takes one batch of each, the driver's copy first and once more in the middle, and
 * a ratio is of that round. The table has medians over the rounds, and the ratio's range. --try: small sizes and one batch, no rates: the driver
 * is a fake. Exit: 0; 1 a result is wrong, or a kernel with a target stays below it; 77 no device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "exec/cuda.h"
#include "plan/bind.h"
#include "plan/build.h"

enum { ROUNDS_MOST = 25, BATCH_MS = 6, LANES = 64, FRAME = 1 << 20, SEED = 3 };
static const double target = 0.90; /* of the driver's copy */

/* ---- plans of one rank: each lane copies, or adds, its part ---- */

static bool any(const struct hoop_problem *problem)
{
    (void)problem;
    return true;
}

static struct hoop_cost free_of_cost(const struct hoop_problem *problem)
{
    (void)problem;
    return (struct hoop_cost){0};
}

static int lanes_wanted;

static enum hoop_status write_plan(struct hoop_builder *builder, const struct hoop_problem *problem)
{
    hoop_grid(builder, lanes_wanted);
    for (int i = 0; i < lanes_wanted; i++) {
        struct hoop_lane *lane = hoop_lane(builder);
        if (problem->coll == HOOP_BROADCAST)
            hoop_lane_copy(lane, HOOP_OUT, i, HOOP_IN, i);
        else
            hoop_lane_combine(lane, HOOP_OUT, i, HOOP_IN, i);
    }
    return hoop_builder_status(builder);
}

static const struct hoop_algo parts = {.name = "parts", .applicable = any, .cost = free_of_cost, .plan = write_plan};

/* ---- what is measured ---- */

enum way { DRIVER, BARE, PLAN };

static const struct kernel {
    const char *name;
    enum way way;
    int lanes; /* of a plan */
    bool adds;
    enum hoop_type type;
    enum hoop_op op;
    bool wanted; /* has the target */
} kernels[] = {
    {"the driver's copy", DRIVER, 0, false, HOOP_F32, HOOP_SUM, false},
    {"copy", BARE, 0, false, HOOP_F32, HOOP_SUM, true},
    {"sum f32", BARE, 0, true, HOOP_F32, HOOP_SUM, true},
    {"sum f16", BARE, 0, true, HOOP_F16, HOOP_SUM, true},
    {"sum bf16", BARE, 0, true, HOOP_BF16, HOOP_SUM, true},
    {"sum f64", BARE, 0, true, HOOP_F64, HOOP_SUM, false},
    {"max f32", BARE, 0, true, HOOP_F32, HOOP_MAX, false},
    {"plan, 16 lanes: copy", PLAN, 16, false, HOOP_F32, HOOP_SUM, false},
    {"plan, 32 lanes: copy", PLAN, 32, false, HOOP_F32, HOOP_SUM, false},
    {"plan, 64 lanes: copy", PLAN, 64, false, HOOP_F32, HOOP_SUM, false},
    {"plan, 64 lanes: sum f32", PLAN, 64, true, HOOP_F32, HOOP_SUM, false},
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

struct bench {
    struct hoop_cuda *cuda;
    struct hoop_cuda_exec *exec;
    hoop_cu_stream stream;
    hoop_cu_address left, right, to, report;
    uint64_t *found; /* the report, for the host */
    struct hoop_plan *plan[KERNELS];
    struct hoop_binding binding[KERNELS];
    size_t bytes;
    bool fake;
    double seconds;
};

struct result {
    double rate, ratio, least, most; /* bytes a second; over the driver's copy: median, range */
    bool right;
};

/* Does the device hold so many lanes at once? */
static bool possible(const struct bench *bench, int k)
{
    return kernels[k].lanes <= hoop_cuda_exec_lanes(bench->exec);
}

/* Give the work to the stream once. */
static enum hoop_status give(struct bench *bench, int k)
{
    const struct kernel *kernel = &kernels[k];
    const struct hoop_device_vector vector = {.to = bench->to,
                                              .left = bench->left,
                                              .right = kernel->adds ? bench->right : 0,
                                              .count = bench->bytes,
                                              .type = kernel->type,
                                              .op = kernel->op};
    const struct hoop_cuda_call call = {.plan = bench->plan[k],
                                        .binding = &bench->binding[k],
                                        .type = kernel->type,
                                        .op = kernel->op,
                                        .in = bench->left,
                                        .out = bench->to};

    switch (kernel->way) {
    case DRIVER:
        return hoop_cuda_copy(bench->cuda, (void *)(uintptr_t)bench->to, (const void *)(uintptr_t)bench->left,
                              bench->bytes, bench->stream);
    case BARE:
        return hoop_cuda_exec_vector(bench->exec, HOOP_CUDA_REDUCE, &vector, 0, bench->stream);
    default:
        return hoop_cuda_exec_launch(bench->exec, &call, bench->stream);
    }
}

/* Seconds of `times` of it. */
static enum hoop_status batch(struct bench *bench, int k, int times, double *seconds)
{
    const uint64_t begin = hoop_now();
    enum hoop_status status = HOOP_OK;

    for (int i = 0; status == HOOP_OK && i < times; i++)
        status = give(bench, k);
    if (status == HOOP_OK)
        status = hoop_cuda_stream_wait(bench->cuda, bench->stream, hoop_deadline(60));
    *seconds = (double)(hoop_now() - begin) * 1e-9;
    return status;
}

static enum hoop_status check_copy(struct bench *bench, bool *right)
{
    const struct hoop_device_vector pattern = {
        .to = bench->to, .left = bench->to, .count = bench->bytes / 8, .seed = SEED, .report = bench->report};

    *bench->found = 0;
    enum hoop_status status = hoop_cuda_exec_vector(bench->exec, HOOP_CUDA_COMPARE, &pattern, 0, bench->stream);
    if (status == HOOP_OK)
        status = hoop_cuda_stream_wait(bench->cuda, bench->stream, hoop_deadline(60));
    *right = *bench->found == 0;
    return status;
}

/* One run to warm up. What a copy leaves is compared; sums are compared by the test of the kernels' bits. */
static enum hoop_status warm_up(struct bench *bench, int k, struct result *result)
{
    double seconds;

    enum hoop_status status = hoop_cuda_fill(bench->cuda, bench->to, 0, bench->bytes, bench->stream);
    if (status == HOOP_OK)
        status = batch(bench, k, 1, &seconds);
    result->right = true;
    return status == HOOP_OK && !kernels[k].adds ? check_copy(bench, &result->right) : status;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void settle(struct result *result, double *rate, double *ratio, int rounds)
{
    qsort(rate, (size_t)rounds, sizeof *rate, by_size);
    qsort(ratio, (size_t)rounds, sizeof *ratio, by_size);
    result->rate = rate[rounds / 2];
    result->ratio = ratio[rounds / 2];
    result->least = ratio[0];
    result->most = ratio[rounds - 1];
}

/* One batch of each; rate[k] and ratio[k] of this round. The driver's copy is timed before and in the middle, and its mean is the measure. */
static enum hoop_status run_round(struct bench *bench, const int *times, double *rate, double *ratio)
{
    enum hoop_status status = HOOP_OK;
    double seconds = 1, again = 0;

    for (int k = 0; status == HOOP_OK && k < KERNELS; k++) {
        status = possible(bench, k) ? batch(bench, k, times[k], &seconds) : HOOP_OK;
        rate[k] = (double)bench->bytes * (kernels[k].adds ? 3 : 2) * times[k] / seconds;
        if (status == HOOP_OK && k == KERNELS / 2) {
            status = batch(bench, 0, times[0], &seconds);
            again = (double)bench->bytes * 2 * times[0] / seconds;
        }
    }
    for (int k = KERNELS - 1; k >= 0; k--)
        ratio[k] = rate[k] / ((rate[0] + again) / 2);
    return status;
}

static enum hoop_status measure(struct bench *bench, struct result *result)
{
    static double rate[KERNELS][ROUNDS_MOST], ratio[KERNELS][ROUNDS_MOST];
    const uint64_t end = hoop_deadline(bench->seconds);
    enum hoop_status status = HOOP_OK;
    int times[KERNELS], rounds = 0;

    for (int k = 0; status == HOOP_OK && k < KERNELS; k++) {
        double seconds;
        times[k] = 1;
        if (!possible(bench, k))
            continue;
        status = warm_up(bench, k, &result[k]);
        if (status == HOOP_OK)
            status = batch(bench, k, 1, &seconds);
        times[k] = bench->fake || seconds >= BATCH_MS * 1e-3 ? 1 : (int)(BATCH_MS * 1e-3 / seconds) + 1;
    }
    while (status == HOOP_OK && rounds < (bench->fake ? 1 : ROUNDS_MOST) && (rounds < 3 || !hoop_expired(end))) {
        double one_rate[KERNELS], one_ratio[KERNELS];
        status = run_round(bench, times, one_rate, one_ratio);
        for (int k = 0; k < KERNELS; k++) {
            rate[k][rounds] = one_rate[k];
            ratio[k][rounds] = one_ratio[k];
        }
        rounds++;
    }
    for (int k = 0; status == HOOP_OK && k < KERNELS; k++)
        settle(&result[k], rate[k], ratio[k], rounds);
    return status;
}

/* ---- making ---- */

static enum hoop_status make_plans(struct bench *bench)
{
    enum hoop_status status = HOOP_OK;

    for (int k = 0; status == HOOP_OK && k < KERNELS; k++) {
        const struct hoop_problem problem = {
            .coll = kernels[k].adds ? HOOP_REDUCE : HOOP_BROADCAST, .ranks = 1, .channels = 1};
        if (kernels[k].way != PLAN)
            continue;
        lanes_wanted = kernels[k].lanes;
        status = hoop_plan_build(&bench->plan[k], &parts, &problem, true);
    }
    return status;
}

static enum hoop_status bind_plans(struct bench *bench)
{
    enum hoop_status status = HOOP_OK;

    for (int k = 0; status == HOOP_OK && k < KERNELS; k++)
        if (bench->plan[k])
            status = hoop_bind(&bench->binding[k], bench->plan[k], bench->bytes / 4, 4, FRAME, 1);
    return status;
}

static enum hoop_status open_bench(struct bench *bench)
{
    enum hoop_status status = hoop_cuda_open(0, &bench->cuda);

    if (status == HOOP_OK)
        status = hoop_cuda_exec_new(&bench->exec, bench->cuda, 1, LANES);
    if (status == HOOP_OK)
        status = hoop_cuda_stream_create(bench->cuda, false, &bench->stream);
    if (status == HOOP_OK)
        status = hoop_cuda_host_alloc(bench->cuda, sizeof *bench->found, (void **)&bench->found, &bench->report);
    return status == HOOP_OK ? make_plans(bench) : status;
}

static void close_bench(struct bench *bench)
{
    hoop_cuda_host_free(bench->cuda, bench->found);
    hoop_cuda_stream_destroy(bench->cuda, bench->stream);
    hoop_cuda_exec_free(bench->exec);
    for (int k = 0; k < KERNELS; k++)
        hoop_plan_free(bench->plan[k]);
    hoop_cuda_close(bench->cuda);
}

static enum hoop_status open_size(struct bench *bench, size_t bytes)
{
    const struct hoop_device_vector pattern = {.count = bytes / 8, .seed = SEED};
    enum hoop_status status = HOOP_OK;
    hoop_cu_address *const buffer[] = {&bench->left, &bench->right, &bench->to};

    bench->bytes = bytes;
    for (int i = 0; status == HOOP_OK && i < 3; i++) {
        struct hoop_device_vector fill = pattern;
        status = hoop_cuda_alloc(bench->cuda, bytes, buffer[i]);
        fill.to = *buffer[i];
        if (status == HOOP_OK)
            status = hoop_cuda_exec_vector(bench->exec, HOOP_CUDA_FILL, &fill, 0, bench->stream);
    }
    return status == HOOP_OK ? bind_plans(bench) : status;
}

static void close_size(struct bench *bench)
{
    hoop_cuda_free(bench->cuda, bench->left);
    hoop_cuda_free(bench->cuda, bench->right);
    hoop_cuda_free(bench->cuda, bench->to);
}

/* ---- telling ---- */

/* A line of the table and of the file. Returns 1 if it is a failure. */
static int tell(const struct bench *bench, int k, const struct result *r, FILE *json)
{
    const bool low = !bench->fake && kernels[k].wanted && r->ratio < target;
    const char *verdict = !r->right           ? "WRONG"
                          : bench->fake       ? "ran"
                          : low               ? "BELOW"
                          : kernels[k].wanted ? "reached"
                                              : "";

    if (bench->fake)
        printf("%8zu KiB  %-24s %9s  %7s  %11s  %s\n", bench->bytes >> 10, kernels[k].name, "-", "-", "-", verdict);
    else
        printf("%8zu MiB  %-24s %9.1f  %6.1f%%  %4.1f-%5.1f%%  %s\n", bench->bytes >> 20, kernels[k].name,
               r->rate * 1e-9, 100 * r->ratio, 100 * r->least, 100 * r->most, verdict);
    if (json) {
        fprintf(json, "{\"kernel\": \"%s\", \"bytes\": %zu, \"right\": %s, \"target\": ", kernels[k].name, bench->bytes,
                r->right ? "true" : "false");
        fprintf(json, kernels[k].wanted ? "%.2f" : "null", target);
        if (bench->fake)
            fprintf(json, ", \"gigabytes_per_second\": null, \"of_driver_copy\": null}\n");
        else
            fprintf(json,
                    ", \"gigabytes_per_second\": %.1f, \"of_driver_copy\": %.4f, \"least\": %.4f, \"most\": %.4f}\n",
                    r->rate * 1e-9, r->ratio, r->least, r->most);
    }
    return low || !r->right;
}

static int run_sizes(struct bench *bench, FILE *json)
{
    static const size_t sizes[] = {(size_t)64 << 20, (size_t)256 << 20, (size_t)1 << 30}, small[] = {65536, 1 << 20};
    const int count = bench->fake ? 2 : 3;
    struct result result[KERNELS];
    int failed = 0;

    for (int i = 0; i < count; i++) {
        const size_t bytes = bench->fake ? small[i] : sizes[i];
        if (4 * bytes > bench->cuda->device.bytes)
            break;
        enum hoop_status status = open_size(bench, bytes);
        if (status == HOOP_OK)
            status = measure(bench, result);
        if (status != HOOP_OK) {
            fprintf(stderr, "rates: %zu bytes: %s\n", bytes, hoop_error_text());
            return 1;
        }
        for (int k = 0; k < KERNELS; k++)
            if (possible(bench, k))
                failed |= tell(bench, k, &result[k], json);
        close_size(bench);
    }
    return failed;
}

static bool seconds_in(const char *text, double *seconds)
{
    char *end;

    *seconds = strtod(text, &end);
    return end != text && *end == 0 && *seconds > 0 && *seconds < 1000;
}

int main(int argc, char **argv)
{
    struct bench bench = {.seconds = 10};
    FILE *json = NULL;

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--try") == 0)
            bench.fake = true;
        else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc && (json = fopen(argv[++i], "w")) != NULL)
            continue;
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc && seconds_in(argv[i + 1], &bench.seconds))
            i++;
        else {
            fprintf(stderr, "usage: rates [--json FILE] [--seconds S] [--try]\n");
            return 2;
        }
    const enum hoop_status status = open_bench(&bench);
    if (status != HOOP_OK) {
        fprintf(stderr, "rates: %s\n", hoop_error_text());
        return status == HOOP_ERR_UNSUPPORTED ? 77 : 1;
    }
    printf("%12s  %-24s %9s  %7s  %11s\n", "size", "kernel", "GB/s", "of copy", "range");
    const int failed = run_sizes(&bench, json);
    close_bench(&bench);
    if (json && fclose(json) != 0) {
        perror("rates: the file of results");
        return 1;
    }
    return failed;
}
