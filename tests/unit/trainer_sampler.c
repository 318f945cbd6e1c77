// SPDX-License-Identifier: BSD-3-Clause
/* The sampler: every sample once up to the padding, the same global order for any number of ranks, orders that are
 * frozen. */
#include "trainer/sampler.h"

#include <string.h>

#include "trainer/random.h"
#include "trainer_check.h"

enum { MOST = 1100 };

static struct sampler make(size_t count, size_t batch, int rank, int ranks, uint64_t seed)
{
    struct sampler sampler;

    ck_assert_int_eq(sampler_make(&sampler, count, batch, rank, ranks, seed), TRAIN_OK);
    return sampler;
}

/* All of one rank's samples of an epoch, in order. */
static size_t whole_epoch(const struct sampler *sampler, uint32_t *samples)
{
    size_t taken = 0;

    for (size_t step = 0; step < sampler_steps(sampler); step++) {
        const size_t count = sampler_step(sampler, step, samples + taken);

        ck_assert_uint_le(count, sampler_share(sampler));
        taken += count;
    }
    return taken;
}

static void check_epoch(size_t count, size_t batch, int ranks)
{
    static uint32_t samples[MOST];
    int seen[MOST] = {0};
    const size_t each = (count + (size_t)ranks - 1) / (size_t)ranks;

    for (int rank = 0; rank < ranks; rank++) {
        struct sampler sampler = make(count, batch, rank, ranks, 5);
        const size_t taken = whole_epoch(&sampler, samples);

        ck_assert_msg(taken == each, "count=%zu batch=%zu ranks=%d rank=%d: took %zu", count, batch, ranks, rank,
                      taken);
        for (size_t i = 0; i < taken; i++) {
            ck_assert_uint_lt(samples[i], count);
            seen[samples[i]]++;
            /* position rank + i × ranks of the padded order */
            ck_assert_uint_eq(samples[i], sampler.order[((size_t)rank + i * (size_t)ranks) % count]);
        }
        sampler_free(&sampler);
    }
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(seen[i] >= 1, "count=%zu batch=%zu ranks=%d: sample %zu left out", count, batch, ranks, i);
        total += (size_t)seen[i];
    }
    ck_assert_uint_eq(total, each * (size_t)ranks);
}

START_TEST(every_sample_once_up_to_padding)
{
    for (size_t count = 1; count <= 40; count++)
        for (size_t batch = 1; batch <= 50; batch += 7)
            for (int ranks = 1; ranks <= 9; ranks++)
                check_epoch(count, batch, ranks);
    check_epoch(1000, 128, 3);
    check_epoch(1000, 128, 16);
}
END_TEST

/* The samples of a step, as a set, do not depend on the number of ranks (as long as nothing is padded). */
START_TEST(steps_do_not_depend_on_ranks)
{
    enum { COUNT = 960, BATCH = 100 };
    uint32_t samples[COUNT];

    for (int ranks = 2; ranks <= 8; ranks++) {
        if (COUNT % ranks)
            continue;
        struct sampler one = make(COUNT, BATCH, 0, 1, 9);
        ck_assert_uint_eq(sampler_steps(&one), 10);
        for (size_t step = 0; step < sampler_steps(&one); step++) {
            const size_t whole = sampler_step(&one, step, samples);
            int left[COUNT] = {0};
            size_t taken = 0;

            for (size_t i = 0; i < whole; i++)
                left[samples[i]]++;
            for (int rank = 0; rank < ranks; rank++) {
                struct sampler sampler = make(COUNT, BATCH, rank, ranks, 9);
                const size_t count = sampler_step(&sampler, step, samples);

                ck_assert_uint_eq(sampler_step_total(&sampler, step), whole);
                for (size_t i = 0; i < count; i++)
                    ck_assert_int_eq(--left[samples[i]], 0);
                taken += count;
                sampler_free(&sampler);
            }
            ck_assert_uint_eq(taken, whole);
        }
        sampler_free(&one);
    }
}
END_TEST

START_TEST(epochs_differ_and_repeat)
{
    uint32_t first[MOST];
    struct sampler sampler = make(1000, 10, 0, 1, 1);

    memcpy(first, sampler.order, 1000 * sizeof *first);
    sampler_epoch(&sampler, 1);
    ck_assert_mem_ne(first, sampler.order, 1000 * sizeof *first);
    sampler_epoch(&sampler, 0);
    ck_assert_mem_eq(first, sampler.order, 1000 * sizeof *first);
    sampler_free(&sampler);
    sampler = make(1000, 10, 0, 1, 0); /* seed + epoch is what counts */
    sampler_epoch(&sampler, 1);
    ck_assert_mem_eq(first, sampler.order, 1000 * sizeof *first);
    sampler_free(&sampler);
}
END_TEST

/* "hoop-shuffle-1": these orders never change. They were computed by a second implementation of the rule. */
START_TEST(frozen_orders)
{
    static const uint32_t small[] = {1, 8, 7, 4, 5, 3, 0, 6, 9, 2};
    struct sampler sampler = make(10, 4, 0, 1, 1);

    ck_assert_mem_eq(sampler.order, small, sizeof small);
    sampler_free(&sampler);
    sampler = make(60000, 128, 0, 1, 1);
    ck_assert_uint_eq(digest(sampler.order, 60000 * sizeof *sampler.order, 0), UINT64_C(0xb9c53a10a1a357f1));
    sampler_free(&sampler);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {every_sample_once_up_to_padding, steps_do_not_depend_on_ranks,
                                  epochs_differ_and_repeat, frozen_orders, NULL};

    return run_tests("trainer sampler", tests, 60);
}
