// SPDX-License-Identifier: BSD-3-Clause
/* Buckets: which tensor goes where, gradients that live inside, and what a wrong backward pass is told. */
#include "trainer/bucket.h"

#include <stdio.h>
#include <string.h>

#include "trainer_check.h"

enum { MIB = 1 << 20 };

static void check_plan(struct bucket_set *set, struct model *model, size_t first, size_t next, const char *wanted)
{
    char got[256] = "";
    size_t at = 0;

    bucket_plan(set, model, first, next);
    for (int i = 0; i < set->buckets; i++) {
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%d-%d", i ? " " : "", set->bucket[i].first,
                               set->bucket[i].last);
        for (int tensor = set->bucket[i].first; tensor >= set->bucket[i].last; tensor--)
            ck_assert_int_eq(set->of[tensor], i);
    }
    ck_assert_str_eq(got, wanted);
}

/* Layers of 784-512-512-10: weights of 1.53, 1.00 and 0.02 MiB. */
START_TEST(limits)
{
    struct model model;
    struct bucket_set set;

    model_plan(&model, 3, (size_t[]){784, 512, 512, 10}, ACTIVATION_RELU);
    check_plan(&set, &model, MIB, 25 * MIB, "5-2 1-0"); /* a bucket may exceed its limit by its last tensor */
    check_plan(&set, &model, 25 * MIB, 25 * MIB, "5-0");
    check_plan(&set, &model, 0, 0, "5-5 4-4 3-3 2-2 1-1 0-0");
    check_plan(&set, &model, 0, MIB, "5-5 4-2 1-0");
    check_plan(&set, &model, 20520, 2048, "5-4 3-3 2-2 1-1 0-0"); /* 40 + 20480 bytes reach the limit to the byte */
    check_plan(&set, &model, 20521, 2049, "5-3 2-2 1-0");
}
END_TEST

/* Every tensor has a place of its own in its bucket, aligned; nothing overlaps or hangs out. */
static void check_places(const struct bucket_set *set, const struct model *model)
{
    for (int i = 0; i < set->buckets; i++) {
        const struct bucket *bucket = &set->bucket[i];
        float *used = calloc(bucket->count, sizeof *used);

        for (int tensor = bucket->first; tensor >= bucket->last; tensor--) {
            const size_t offset = (size_t)(model->tensor[tensor].gradient - bucket->gradients);

            ck_assert_uint_eq(offset % MODEL_ALIGN, 0);
            ck_assert_uint_le(offset + model->tensor[tensor].count, bucket->count);
            for (size_t k = 0; k < model->tensor[tensor].count; k++)
                ck_assert((used[offset + k] += 1) == 1);
        }
        free(used);
    }
}

static struct hoop_comm *comm;
static hoop_stream *stream;
static struct model model;
static struct bucket_set set;

static void begin(size_t first, size_t next)
{
    ck_assert_int_eq(hoop_comm_init_rank(&comm, 1, NULL, 0), HOOP_OK);
    ck_assert_int_eq(hoop_stream_create(&stream), HOOP_OK);
    model_plan(&model, 3, (size_t[]){20, 30, 17, 10}, ACTIVATION_RELU);
    bucket_plan(&set, &model, first, next);
    ck_assert_int_eq(bucket_make(&set, comm, stream), TRAIN_OK);
    train_fail_clear();
}

static void end(void)
{
    ck_assert_int_eq(hoop_stream_destroy(stream), HOOP_OK);
    bucket_free(&set);
    ck_assert_int_eq(hoop_comm_destroy(comm), HOOP_OK);
}

START_TEST(places)
{
    static const size_t sizes[][2] = {{0, 0}, {100, 1000}, {1000, 2500}, {MIB, MIB}};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        begin(sizes[i][0], sizes[i][1]);
        check_places(&set, &model);
        end();
    }
}
END_TEST

static void fill(void)
{
    for (int i = 0; i < model.tensors; i++)
        for (size_t k = 0; k < model.tensor[i].count; k++)
            model.tensor[i].gradient[k] = (float)i + (float)k;
}

/* On one rank the sum is what went in; sent in index order as they fill, or only at the end. */
START_TEST(one_pass)
{
    for (int overlap = 0; overlap <= 1; overlap++) {
        begin(700, 2000); /* 5-4 3-2 1-0 */
        ck_assert_int_eq(set.buckets, 3);
        fill();
        bucket_begin(&set, overlap);
        static const int order[] = {3, 2, 5, 4, 1, 0}; /* the second bucket is full before the first */
        static const int sent[] = {0, 0, 0, 2, 2, 3};
        for (int i = 0; i < 6; i++) {
            ck_assert_int_eq(bucket_ready(&set, order[i]), TRAIN_OK);
            ck_assert_int_eq(set.sent, overlap ? sent[i] : 0);
        }
        ck_assert_int_eq(bucket_end(&set), TRAIN_OK);
        ck_assert_int_eq(hoop_stream_synchronize(stream), HOOP_OK);
        ck_assert_int_eq(bucket_reduce(&set), TRAIN_OK);
        ck_assert_int_eq(set.sent, 3);
        for (int i = 0; i < model.tensors; i++)
            for (size_t k = 0; k < model.tensor[i].count; k++)
                ck_assert(model.tensor[i].gradient[k] == (float)i + (float)k);
        end();
    }
}
END_TEST

START_TEST(tensor_twice)
{
    begin(MIB, MIB);
    bucket_begin(&set, false);
    ck_assert_int_eq(bucket_ready(&set, 3), TRAIN_OK);
    ck_assert_int_eq(bucket_ready(&set, 3), TRAIN_DISAGREE);
    ck_assert_ptr_nonnull(strstr(train_fail_text(), "bias2"));
    end();
}
END_TEST

START_TEST(tensor_left_out)
{
    begin(MIB, MIB);
    bucket_begin(&set, false);
    for (int i = 0; i < 6; i++)
        if (i != 4)
            ck_assert_int_eq(bucket_ready(&set, i), TRAIN_OK);
    ck_assert_int_eq(bucket_end(&set), TRAIN_DISAGREE);
    ck_assert_ptr_nonnull(strstr(train_fail_text(), "weight3"));
    bucket_begin(&set, false); /* the next pass begins anew */
    ck_assert_int_eq(bucket_ready(&set, 3), TRAIN_OK);
    end();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {limits, places, one_pass, tensor_twice, tensor_left_out, NULL};

    return run_tests("trainer bucket", tests, 60);
}
