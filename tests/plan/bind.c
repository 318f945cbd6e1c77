// SPDX-License-Identifier: BSD-3-Clause
/* The binder: pieces tile the vector exactly and fit the frame, for every shape of plan and for counts up to the end
 * of size_t, where a formula in 128 bits is the judge. */
#include "plan/bind.h"
#include "harness.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "plans.h"

static struct hoop_plan *build(const char *algo, enum hoop_coll coll, int ranks, int rank, int channels)
{
    const struct hoop_problem problem = {.coll = coll, .ranks = ranks, .rank = rank, .channels = channels};
    struct hoop_plan *plan = NULL;

    ck_assert_int_eq(hoop_plan_build(&plan, hoop_algo_find(algo), &problem, true), HOOP_OK);
    return plan;
}

/* Which buffer holds the whole vector? */
static enum hoop_buffer whole_buffer(enum hoop_coll coll)
{
    return coll == HOOP_ALL_GATHER ? HOOP_OUT : HOOP_IN;
}

/* Every element of the whole vector is in exactly one piece, pieces of a chunk follow each other, and all fit. */
static bool tiles_exactly(const struct hoop_plan *plan, size_t count, size_t element, size_t frame, size_t slices)
{
    const enum hoop_coll coll = plan->problem.coll;
    const size_t blocks = coll == HOOP_ALL_GATHER || coll == HOOP_REDUCE_SCATTER ? (size_t)plan->problem.ranks : 1;
    unsigned char *seen = calloc(blocks * count + 1, 1);
    struct hoop_binding binding;
    bool good = hoop_bind(&binding, plan, count, element, frame, slices) == HOOP_OK && binding.slices >= 1;

    for (uint32_t chunk = 0; good && chunk < plan->grid; chunk++)
        for (size_t slice = 0, next = 0; good && slice < binding.slices; slice++) {
            const struct hoop_extent piece = hoop_bind_extent(&binding, whole_buffer(coll), chunk, slice);

            good = piece.count <= binding.piece && piece.count * element <= frame &&
                   piece.first + piece.count <= blocks * count && (slice == 0 || piece.first == next);
            next = piece.first + piece.count;
            for (size_t i = 0; good && i < piece.count; i++)
                good = seen[piece.first + i]++ == 0;
        }
    for (size_t i = 0; good && i < blocks * count; i++)
        good = seen[i] == 1;
    free(seen);
    return good;
}

static const struct {
    const char *algo;
    enum hoop_coll coll;
    int ranks, channels;
} shapes[] = {
    {"flat", HOOP_ALL_REDUCE, 4, 1},     {"ring", HOOP_ALL_REDUCE, 7, 1},   {"ring", HOOP_ALL_REDUCE, 5, 3},
    {"ring", HOOP_ALL_GATHER, 3, 1},     {"ring", HOOP_ALL_GATHER, 5, 2},   {"ring", HOOP_REDUCE_SCATTER, 4, 1},
    {"flat", HOOP_REDUCE_SCATTER, 3, 4}, {"dbtree", HOOP_ALL_REDUCE, 6, 2}, {"tree", HOOP_BROADCAST, 5, 1},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

START_TEST(tiles)
{
    struct hoop_plan *plan = build(shapes[_i].algo, shapes[_i].coll, shapes[_i].ranks, 1, shapes[_i].channels);
    static const size_t frames[] = {4, 12, 64, 4096};

    for (size_t f = 0; f < 4; f++)
        for (size_t slices = 1; slices <= 4; slices++)
            for (size_t count = 0; count <= 5000; count = count < 70 ? count + 1 : 3 * count + 1)
                ck_assert_msg(tiles_exactly(plan, count, 4, frames[f], slices), "count %zu frame %zu slices %zu", count,
                              frames[f], slices);
    hoop_plan_free(plan);
}
END_TEST

/* The rule in 128 bits. */
static struct hoop_extent part_wide(size_t total, size_t parts, size_t i)
{
    const unsigned __int128 remainder = total % parts;
    const unsigned __int128 first = (unsigned __int128)i * (total / parts) + (i < remainder ? i : remainder);

    return (struct hoop_extent){(size_t)first, total / parts + (i < remainder)};
}

START_TEST(huge_counts)
{
    const size_t blocks =
        shapes[_i].coll == HOOP_ALL_GATHER || shapes[_i].coll == HOOP_REDUCE_SCATTER ? (size_t)shapes[_i].ranks : 1;
    struct hoop_plan *plan = build(shapes[_i].algo, shapes[_i].coll, shapes[_i].ranks, 1, shapes[_i].channels);
    const uint32_t each = plan->grid / (uint32_t)blocks;

    for (size_t element = 1; element <= 8; element *= 2)
        for (size_t less = 0; less < 9; less++) {
            const size_t count = SIZE_MAX / element / blocks - less;
            struct hoop_binding binding;

            ck_assert_int_eq(hoop_bind(&binding, plan, count, element, 131072, 1), HOOP_OK);
            ck_assert_uint_le(binding.piece * element, 131072);
            for (uint32_t chunk = 0; chunk < plan->grid; chunk++) {
                const struct hoop_extent whole = part_wide(count, each, chunk % each);
                const size_t slices[] = {0, 1, binding.slices / 2, binding.slices - 2, binding.slices - 1};

                for (size_t i = 0; i < 5; i++) {
                    const struct hoop_extent piece =
                        hoop_bind_extent(&binding, whole_buffer(shapes[_i].coll), chunk, slices[i]);
                    const struct hoop_extent slice = part_wide(whole.count, binding.slices, slices[i]);

                    ck_assert_uint_eq(piece.first, chunk / each * count + whole.first + slice.first);
                    ck_assert_uint_eq(piece.count, slice.count);
                }
            }
            ck_assert_int_eq(hoop_bind(&binding, plan, SIZE_MAX / element / blocks + 1, element, 131072, 1),
                             element * blocks == 1 ? HOOP_OK : HOOP_ERR_ARG);
        }
    hoop_plan_free(plan);
}
END_TEST

/* IN of all_gather and OUT of reduce_scatter are counted from the own block. */
START_TEST(own_block)
{
    struct hoop_plan *gather = build("ring", HOOP_ALL_GATHER, 4, 2, 1);
    struct hoop_plan *scatter = build("ring", HOOP_REDUCE_SCATTER, 4, 2, 1);
    struct hoop_binding binding;
    struct hoop_extent extent;

    ck_assert_int_eq(hoop_bind(&binding, gather, 10, 4, 4096, 1), HOOP_OK);
    extent = hoop_bind_extent(&binding, HOOP_IN, 2, 0);
    ck_assert(extent.first == 0 && extent.count == 10);
    extent = hoop_bind_extent(&binding, HOOP_OUT, 2, 0);
    ck_assert(extent.first == 20 && extent.count == 10);
    ck_assert_int_eq(hoop_bind(&binding, scatter, 10, 4, 4096, 2), HOOP_OK);
    extent = hoop_bind_extent(&binding, HOOP_OUT, 2, 1);
    ck_assert(extent.first == 5 && extent.count == 5);
    extent = hoop_bind_extent(&binding, HOOP_IN, 3, 1);
    ck_assert(extent.first == 35 && extent.count == 5);
    hoop_plan_free(gather);
    hoop_plan_free(scatter);
}
END_TEST

/* TMP chunks do not overlap, fit their memory, and have the size of chunk t mod G at both ends of a message. */
START_TEST(temporary)
{
    struct hoop_plan *plan = build("dbtree", HOOP_REDUCE, 9, 1, 3);
    struct hoop_binding binding;

    ck_assert_uint_gt(plan->tmp, 1);
    for (size_t count = 0; count < 200; count++) {
        ck_assert_int_eq(hoop_bind(&binding, plan, count, 8, 64, 1), HOOP_OK);
        ck_assert_uint_eq(binding.tmp_stride % 64, 0);
        for (uint32_t chunk = plan->tmp_first; chunk < plan->tmp; chunk++)
            for (size_t slice = 0; slice < binding.slices; slice++) {
                const struct hoop_extent piece = hoop_bind_extent(&binding, HOOP_TMP, chunk, slice);
                const struct hoop_extent same = hoop_bind_extent(&binding, HOOP_OUT, chunk % plan->grid, slice);

                ck_assert_uint_eq(piece.first, 0);
                ck_assert_uint_eq(piece.count, same.count);
                ck_assert_uint_le(piece.count * 8, binding.tmp_stride);
                ck_assert_uint_le(hoop_bind_tmp_offset(&binding, chunk) + binding.tmp_stride, binding.tmp_bytes);
            }
    }
    hoop_plan_free(plan);
}
END_TEST

/* A rank that needs one temporary chunk of a high number pays for one. */
START_TEST(temporary_from_the_first)
{
    const struct hoop_problem problem = {
        .coll = HOOP_ALL_REDUCE, .ranks = 7, .rank = 6, .in_place = true, .channels = 1};
    struct hoop_binding binding;
    struct hoop_plan *plan;

    ck_assert_int_eq(hoop_plan_build(&plan, hoop_algo_find("twoshot"), &problem, true), HOOP_OK);
    ck_assert_uint_eq(plan->tmp, 7);
    ck_assert_uint_eq(plan->tmp_first, 6);
    ck_assert_int_eq(hoop_bind(&binding, plan, 1000, 8, 65536, 1), HOOP_OK);
    ck_assert_uint_eq(binding.tmp_bytes, binding.tmp_stride);
    ck_assert_uint_eq(hoop_bind_tmp_offset(&binding, 6), 0);
    hoop_plan_free(plan);
}
END_TEST

START_TEST(refused)
{
    struct hoop_plan *plan = build("ring", HOOP_ALL_GATHER, 3, 0, 1);
    struct hoop_plan *barrier = build("tree", HOOP_BARRIER, 3, 0, 1);
    struct hoop_binding binding;

    ck_assert_int_eq(hoop_bind(&binding, plan, 10, 8, 7, 1), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_bind(&binding, plan, 10, 0, 7, 1), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_bind(&binding, plan, SIZE_MAX / 8, 8, 64, 1), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_bind(&binding, barrier, 1000, 1, 64, 9), HOOP_OK);
    ck_assert(binding.empty_frames && binding.slices == 1 && binding.piece == 0);
    hoop_plan_free(plan);
    hoop_plan_free(barrier);
}
END_TEST

/* ---- blocks of different sizes ---- */

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static const struct {
    const char *algo;
    enum hoop_coll coll;
    int ranks, channels;
} uneven[] = {
    {"flat", HOOP_ALL_GATHER, 5, 1}, {"ring", HOOP_ALL_GATHER, 4, 3},     {"ring", HOOP_ALL_GATHER, 3, 1},
    {"flat", HOOP_ALL_TO_ALL, 5, 2}, {"pairwise", HOOP_ALL_TO_ALL, 6, 1},
};
enum { UNEVENS = sizeof uneven / sizeof uneven[0], UNEVEN_MOST = 6 };

/* Equal blocks, packed: the same pieces as without a list. */
START_TEST(equal_blocks)
{
    struct hoop_plan *plan = build(uneven[_i].algo, uneven[_i].coll, uneven[_i].ranks, 2, uneven[_i].channels);

    for (size_t count = 0; count < 300; count = 2 * count + 1)
        for (size_t slices = 1; slices < 4; slices++) {
            struct hoop_extent whole[UNEVEN_MOST], own[UNEVEN_MOST];
            struct hoop_binding listed, plain;

            for (int rank = 0; rank < uneven[_i].ranks; rank++) {
                whole[rank] = (struct hoop_extent){(size_t)rank * count, count};
                own[rank] = (struct hoop_extent){0, count};
            }
            ck_assert_int_eq(hoop_bind(&plain, plan, count, 4, 64, slices), HOOP_OK);
            ck_assert_int_eq(
                hoop_bind_blocks(&listed, plan, plain.in_is_block ? own : whole, whole, count, 4, 64, slices), HOOP_OK);
            ck_assert_uint_eq(listed.slices, plain.slices);
            ck_assert_uint_eq(listed.tmp_bytes, plain.tmp_bytes);
            for (uint32_t chunk = 0; chunk < plan->grid; chunk++)
                for (size_t slice = 0; slice < plain.slices; slice++)
                    for (int buffer = HOOP_IN; buffer <= HOOP_TMP; buffer++) {
                        const struct hoop_extent a = hoop_bind_extent(&plain, (enum hoop_buffer)buffer, chunk, slice);
                        const struct hoop_extent b = hoop_bind_extent(&listed, (enum hoop_buffer)buffer, chunk, slice);
                        ck_assert_uint_eq(a.first, b.first);
                        ck_assert_uint_eq(a.count, b.count);
                    }
        }
    hoop_plan_free(plan);
}
END_TEST

/* Any counts, also beyond 2^32: the pieces of each block follow each other from its first element to its last, and fit. */
START_TEST(blocks_tile)
{
    struct hoop_plan *plan = build(uneven[_i].algo, uneven[_i].coll, uneven[_i].ranks, 0, uneven[_i].channels);
    const uint32_t each = plan->grid / (uint32_t)uneven[_i].ranks;
    uint64_t state = (uint64_t)_i;

    for (int turn = 0; turn < 2000; turn++) {
        const size_t frame = 1 + draw(&state) % 200, scale = turn % 10 == 0 ? (size_t)1 << 40 : 400;
        struct hoop_extent block[UNEVEN_MOST];
        struct hoop_binding binding;
        size_t largest = 0;

        for (int rank = 0; rank < uneven[_i].ranks; rank++) {
            const size_t count = draw(&state) % 3 ? draw(&state) * (scale > 400 ? 977 : 1) % scale : 0;
            block[rank] = (struct hoop_extent){draw(&state) << draw(&state) % 20, count};
            largest = count > largest ? count : largest;
        }
        const size_t wide = scale > 400 ? (size_t)1 << 37 : frame;
        ck_assert_int_eq(hoop_bind_blocks(&binding, plan, block, block, largest, 1, wide, 1), HOOP_OK);
        for (int rank = 0; rank < uneven[_i].ranks; rank++) {
            size_t next = block[rank].first;
            for (uint32_t i = 0; i < each; i++)
                for (size_t slice = 0; slice < binding.slices; slice++) {
                    const struct hoop_extent piece =
                        hoop_bind_extent(&binding, HOOP_OUT, (uint32_t)rank * each + i, slice);
                    ck_assert_uint_le(piece.count, binding.piece);
                    ck_assert_uint_le(piece.count, wide);
                    ck_assert(piece.count == 0 || piece.first == next);
                    next += piece.count;
                }
            ck_assert_uint_eq(next, block[rank].first + block[rank].count);
        }
    }
    hoop_plan_free(plan);
}
END_TEST

START_TEST(blocks_refused)
{
    struct hoop_plan *ring = build("ring", HOOP_ALL_GATHER, 3, 0, 1),
                     *sum = build("ring", HOOP_REDUCE_SCATTER, 3, 0, 1);
    struct hoop_plan *exchange = build("pairwise", HOOP_ALL_TO_ALL, 3, 0, 1);
    struct hoop_extent block[3] = {{0, 3}, {9, 0}, {3, 6}};
    struct hoop_binding binding;

    ck_assert_int_eq(hoop_bind_blocks(&binding, ring, block, block, 6, 8, 64, 1), HOOP_OK);
    ck_assert_int_eq(hoop_bind_blocks(&binding, ring, block, block, 5, 8, 64, 1), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_bind_blocks(&binding, sum, block, block, 6, 8, 64, 1), HOOP_ERR_UNSUPPORTED);
    ck_assert_int_eq(hoop_bind_blocks(&binding, exchange, block, block, 6, 8, 64, 1), HOOP_OK);
    for (uint32_t s = 0; s < exchange->lane[0].steps; s++)
        if (exchange->lane[0].step[s].kind == HOOP_STEP_SEND) /* a block that is for somebody else */
            exchange->lane[0].step[s].from = (exchange->lane[0].step[s].from + 1) % 3;
    ck_assert_int_eq(hoop_bind_blocks(&binding, exchange, block, block, 6, 8, 64, 1), HOOP_ERR_UNSUPPORTED);
    block[2].first = SIZE_MAX / 8 - 5;
    ck_assert_int_eq(hoop_bind_blocks(&binding, ring, block, block, 6, 8, 64, 1), HOOP_ERR_ARG);
    hoop_plan_free(ring);
    hoop_plan_free(sum);
    hoop_plan_free(exchange);
}
END_TEST

/* What calls with counts of their own rely on: an algorithm that takes an uneven all_to_all moves blocks straight; and no plan of
 * an all_gather that is not in place writes the own block of OUT but from IN, so that IN may lie there all the same. */
START_TEST(every_algorithm_and_uneven_blocks)
{
    const struct hoop_algo *algo;

    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++)
        for (int ranks = 1; ranks <= 16; ranks++)
            for (int rank = 0; rank < ranks; rank++) {
                struct hoop_problem problem = {
                    .coll = HOOP_ALL_TO_ALL, .ranks = ranks, .rank = rank, .channels = 1, .uneven = true};
                struct hoop_extent block[16] = {{0, 0}};
                struct hoop_binding binding;
                struct hoop_plan *plan;

                for (int in_place = 0; in_place < 2; in_place++) {
                    problem.in_place = in_place;
                    if (!algo->applicable(&problem))
                        continue;
                    ck_assert_int_eq(hoop_plan_build(&plan, algo, &problem, true), HOOP_OK);
                    ck_assert_msg(hoop_bind_blocks(&binding, plan, block, block, 0, 1, 64, 1) == HOOP_OK,
                                  "%s, %d ranks", algo->name, ranks);
                    hoop_plan_free(plan);
                }
                problem = (struct hoop_problem){.coll = HOOP_ALL_GATHER, .ranks = ranks, .rank = rank, .channels = 1};
                if (!algo->applicable(&problem))
                    continue;
                ck_assert_int_eq(hoop_plan_build(&plan, algo, &problem, true), HOOP_OK);
                for (uint32_t l = 0; l < plan->lanes; l++)
                    for (uint32_t s = 0; s < plan->lane[l].steps; s++) {
                        const struct hoop_step *step = &plan->lane[l].step[s];
                        const bool writes = step->kind != HOOP_STEP_SEND && step->kind != HOOP_STEP_AFTER;
                        if (writes && step->to_buffer == HOOP_OUT &&
                            step->to / (plan->grid / (uint32_t)ranks) == (uint32_t)rank)
                            ck_assert_msg(step->kind == HOOP_STEP_COPY && step->from_buffer == HOOP_IN &&
                                              step->from == step->to,
                                          "%s, %d ranks, rank %d, lane %u, step %u", algo->name, ranks, rank, l, s);
                    }
                hoop_plan_free(plan);
            }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("binder");
    TCase *tests = tcase_create("all");

    tcase_add_loop_test(tests, tiles, 0, SHAPES);
    tcase_add_loop_test(tests, huge_counts, 0, SHAPES);
    tcase_add_test(tests, own_block);
    tcase_add_test(tests, temporary);
    tcase_add_test(tests, temporary_from_the_first);
    tcase_add_test(tests, refused);
    tcase_add_loop_test(tests, equal_blocks, 0, UNEVENS);
    tcase_add_loop_test(tests, blocks_tile, 0, UNEVENS);
    tcase_add_test(tests, blocks_refused);
    tcase_add_test(tests, every_algorithm_and_uneven_blocks);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
