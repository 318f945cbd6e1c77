// SPDX-License-Identifier: BSD-3-Clause
/* Test accuracy over all ranks: rank r takes test samples r, r + n, …; nothing is padded, and what is exchanged are
 * whole-number sums, so the result does not depend on how many ranks there are. */
#include "fail.h"
#include "trainer.h"

/* Sums over this rank's part. */
static void evaluate_part(struct trainer *trainer, int64_t sums[2], double *loss)
{
    const struct samples *test = &trainer->dataset.test;
    size_t next = (size_t)trainer->rank;

    while (next < test->count) {
        int64_t right;
        size_t count = 0;

        for (; count < trainer->rows && next < test->count; next += (size_t)trainer->ranks)
            trainer->samples[count++] = (uint32_t)next;
        dataset_gather(&trainer->dataset, test, trainer->samples, count, trainer->inputs, trainer->labels);
        model_forward(&trainer->model, trainer->inputs, count);
        *loss += model_loss(&trainer->model, trainer->labels, count, &right);
        sums[0] += right;
        sums[1] += (int64_t)count;
    }
}

int trainer_evaluate(struct trainer *trainer)
{
    const double begun = seconds_now();
    int64_t sums[2] = {0};
    double loss = 0;

    evaluate_part(trainer, sums, &loss);
    enum hoop_status status = hoop_all_reduce(sums, sums, 2, HOOP_I64, HOOP_SUM, trainer->comm, NULL);
    if (status == HOOP_OK)
        status = hoop_all_reduce(&loss, &loss, 1, HOOP_F64, HOOP_SUM, trainer->comm, NULL);
    if (status != HOOP_OK)
        return train_fail_call(status, trainer->comm, "sum of the test results");
    if (sums[1] != (int64_t)trainer->dataset.test.count)
        return train_fail_shared(TRAIN_DISAGREE, "the ranks tested %lld samples together, not %zu", (long long)sums[1],
                                 trainer->dataset.test.count);
    trainer->last = (struct evaluation){.step = trainer->step,
                                        .epoch = trainer->epoch,
                                        .right = sums[0],
                                        .count = sums[1],
                                        .accuracy = (double)sums[0] / (double)sums[1],
                                        .loss = loss / (double)sums[1]};
    report_evaluation(&trainer->report, &trainer->last);
    trainer->evaluation_seconds += seconds_now() - begun;
    return TRAIN_OK;
}
