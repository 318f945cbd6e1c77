// SPDX-License-Identifier: BSD-3-Clause
/* The training loop.
 *
 * A step: gather the rank's share of the global batch, forward, send the control word, backward with buckets leaving as
 * they fill, wait for the stream, decide, update. Every decision (stop, give up) is made from values that were reduced
 * over all ranks, and so is made by all of them at the same place; the collective calls of a step are in this file and
 * in bucket.c, in the same order on every rank.
 *
 * How much communication is hidden: every MEASURE_EVERY-th step does not overlap; after a barrier it reduces the
 * buckets with nothing beside. That gives the time of the communication alone, and how long such a step waits after
 * its backward pass, for late ranks too. What an overlapped step waits less is what was hidden. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "fail.h"
#include "signals.h"
#include "trainer.h"

enum { MEASURE_EVERY = 64, MEASURE_AT = 8 };

static void keep_time(struct times *times, double seconds)
{
    times->value[times->count++ % TRAINER_TIMES] = seconds;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const struct times *times)
{
    const size_t count = times->count < TRAINER_TIMES ? times->count : TRAINER_TIMES;
    double sorted[TRAINER_TIMES];

    if (count == 0)
        return 0;
    memcpy(sorted, times->value, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare);
    return sorted[count / 2];
}

static int send_control(struct trainer *trainer, double loss, int64_t right, size_t count, hoop_stream *stream)
{
    double *control = trainer->control;
    const int signal = signals_pending();

    control[CONTROL_LOSS] = loss;
    control[CONTROL_RIGHT] = (double)right;
    control[CONTROL_COUNT] = (double)count;
    control[CONTROL_INTERRUPT] = signal == SIGINT;
    control[CONTROL_TERMINATE] = signal == SIGTERM;
    const enum hoop_status status =
        hoop_all_reduce(control, control, CONTROL_WORDS, HOOP_F64, HOOP_SUM, trainer->comm, stream);
    return status == HOOP_OK ? TRAIN_OK : train_fail_call(status, trainer->comm, "control word");
}

/* The plan that reduced the last bucket, for the summary. */
static void note_plan(struct trainer *trainer)
{
    struct hoop_stats stats = {.size = sizeof stats};

    if (hoop_stats(trainer->comm, &stats) == HOOP_OK)
        snprintf(trainer->plan, sizeof trainer->plan, "%.63s", stats.last_plan);
}

static int wait_for_stream(struct trainer *trainer)
{
    const enum hoop_status status = hoop_stream_synchronize(trainer->stream);

    return status == HOOP_OK ? TRAIN_OK : train_fail_call(status, trainer->comm, "all-reduce of gradients");
}

/* Reduce the buckets with nothing beside it and take the time, from a barrier on. */
static int measure(struct trainer *trainer)
{
    const enum hoop_status status = hoop_barrier(trainer->comm, NULL);

    if (status != HOOP_OK)
        return train_fail_call(status, trainer->comm, "barrier");
    const double begun = seconds_now();
    const int code = bucket_reduce(&trainer->buckets);

    keep_time(&trainer->communication, seconds_now() - begun);
    note_plan(trainer);
    return code;
}

/* Backward with its communication. On return the gradients are those of the global batch. */
static int backward(struct trainer *trainer, size_t count, double scale, struct step_figures *figures)
{
    const bool measured = trainer->ranks > 1 && trainer->step % MEASURE_EVERY == MEASURE_AT;
    double from = seconds_now();

    bucket_begin(&trainer->buckets, trainer->options->overlap && !measured);
    int code = model_backward(&trainer->model, trainer->inputs, trainer->labels, count, (float)scale, bucket_ready,
                              &trainer->buckets);
    if (code == TRAIN_OK)
        code = bucket_end(&trainer->buckets);
    figures->backward = seconds_now() - from;

    from = seconds_now();
    if (code == TRAIN_OK) /* the control word is on the stream in any case */
        code = wait_for_stream(trainer);
    if (code == TRAIN_OK)
        code = measured ? measure(trainer) : bucket_reduce(&trainer->buckets);
    figures->exposed = seconds_now() - from;
    keep_time(measured ? &trainer->serial : &trainer->exposed, figures->exposed);
    if (trainer->communication.count > 0)
        figures->communication = trainer->communication.value[(trainer->communication.count - 1) % TRAINER_TIMES];
    return code;
}

/* What the control word and the reduced gradients say: the same on all ranks. */
static int decide(struct trainer *trainer, size_t total, struct step_figures *figures)
{
    const double *control = trainer->control;

    figures->loss = control[CONTROL_LOSS] / control[CONTROL_COUNT];
    figures->accuracy = control[CONTROL_RIGHT] / control[CONTROL_COUNT];
    figures->norm = gradient_norm(&trainer->model);
    if (lround(control[CONTROL_COUNT]) != (long)total)
        return train_fail_shared(TRAIN_DISAGREE, "step %zu: the ranks took %.0f samples together, not %zu",
                                 figures->step, control[CONTROL_COUNT], total);
    if (!isfinite(figures->loss) || !isfinite(figures->norm))
        return train_fail_shared(
            TRAIN_DIVERGED,
            "step %zu: the loss is %g and the norm of the gradient %g; the parameters were not updated. "
            "Try a smaller --lr or a longer --warmup.",
            figures->step, figures->loss, figures->norm);
    if (control[CONTROL_TERMINATE] > 0)
        trainer->stop_signal = SIGTERM;
    else if (control[CONTROL_INTERRUPT] > 0)
        trainer->stop_signal = SIGINT;
    return TRAIN_OK;
}

/* Samples per second since the last step line. */
static void count_samples(struct trainer *trainer, size_t total, struct step_figures *figures)
{
    const size_t every = trainer->options->log_every ? trainer->options->log_every : 50;
    const double now = seconds_now();

    trainer->samples_done += total;
    trainer->window_samples += (double)total;
    if (trainer->samples_per_second <= 0 || figures->step % every == 0)
        trainer->samples_per_second = trainer->window_samples / fmax(now - trainer->window_begun, 1e-9);
    if (figures->step % every == 0) {
        trainer->window_begun = now;
        trainer->window_samples = 0;
    }
    figures->samples_per_second = trainer->samples_per_second;
}

/* Step `place` of the epoch. */
static int run_step(struct trainer *trainer, size_t place)
{
    const struct options *options = trainer->options;
    const size_t total = sampler_step_total(&trainer->sampler, place);
    struct step_figures figures = {.step = trainer->step + 1, .epoch = trainer->epoch};
    int64_t right;

    double from = seconds_now();
    const size_t count = sampler_step(&trainer->sampler, place, trainer->samples);
    dataset_gather(&trainer->dataset, &trainer->dataset.train, trainer->samples, count, trainer->inputs,
                   trainer->labels);
    double now = seconds_now();
    figures.data = now - from;

    from = now;
    model_forward(&trainer->model, trainer->inputs, count);
    const double loss = model_loss(&trainer->model, trainer->labels, count, &right);
    figures.forward = seconds_now() - from;

    int code = send_control(trainer, loss, right, count, trainer->stream);
    if (code == TRAIN_OK)
        code = backward(trainer, count, 1.0 / (double)total, &figures);
    if (code == TRAIN_OK)
        code = decide(trainer, total, &figures);
    if (code != TRAIN_OK)
        return code;

    from = seconds_now();
    figures.rate = schedule_rate(options->schedule, options->rate, trainer->step, trainer->warmup, trainer->steps);
    optimizer_step(&trainer->optimizer, &trainer->model, figures.rate);
    figures.update = seconds_now() - from;
    trainer->step++;
    count_samples(trainer, total, &figures);
    report_step(&trainer->report, &figures);
    return TRAIN_OK;
}

static int verify(struct trainer *trainer)
{
    const int code = agree_digests(&trainer->model, trainer->comm, &trainer->parameters);

    if (code != TRAIN_OK)
        return code;
    trainer->checks++;
    trainer->checked_step = trainer->step;
    report_verified(&trainer->report, trainer->step, trainer->parameters);
    return TRAIN_OK;
}

static bool target_reached(const struct trainer *trainer)
{
    return trainer->options->target_accuracy > 0 && trainer->last.count > 0 &&
           trainer->last.accuracy >= trainer->options->target_accuracy;
}

static int run_epoch(struct trainer *trainer)
{
    const size_t places = sampler_steps(&trainer->sampler), every = trainer->options->verify_every;
    int code = TRAIN_OK;

    sampler_epoch(&trainer->sampler, trainer->epoch - 1);
    for (size_t place = 0; place < places && trainer->step < trainer->steps && !trainer->stop_signal; place++) {
        code = run_step(trainer, place);
        if (code == TRAIN_OK && every && trainer->step % every == 0)
            code = verify(trainer);
        if (code != TRAIN_OK)
            return code;
    }
    return trainer->stop_signal ? TRAIN_OK : trainer_evaluate(trainer);
}

int trainer_loop(struct trainer *trainer)
{
    const double begun = seconds_now();
    int code = TRAIN_OK;

    trainer->window_begun = begun;
    while (code == TRAIN_OK && trainer->step < trainer->steps && !trainer->stop_signal && !target_reached(trainer)) {
        trainer->epoch++;
        code = run_epoch(trainer);
    }
    trainer->loop_seconds = seconds_now() - begun;
    if (code != TRAIN_OK)
        return code;
    if (trainer->stop_signal)
        return trainer->stop_signal == SIGTERM ? TRAIN_TERMINATE : TRAIN_INTERRUPT;
    if (trainer->checks == 0 || trainer->checked_step != trainer->step)
        code = verify(trainer);
    if (code == TRAIN_OK && trainer->options->target_accuracy > 0 && !target_reached(trainer))
        return train_fail_shared(TRAIN_DIVERGED, "the test accuracy is %.4f, not %.4f as --target-accuracy asks",
                                 trainer->last.accuracy, trainer->options->target_accuracy);
    return code;
}

void trainer_summary(const struct trainer *trainer, struct summary *summary, int code)
{
    const double training = trainer->loop_seconds - trainer->evaluation_seconds;
    const char *why = "all steps done";

    if (trainer->stop_signal)
        why = trainer->stop_signal == SIGTERM ? "stopped by SIGTERM" : "stopped by SIGINT";
    else if (target_reached(trainer))
        why = "target accuracy reached";
    else if (code != TRAIN_OK)
        why = trainer->step < trainer->steps ? "gave up" : "target accuracy not reached";
    *summary = (struct summary){.step = trainer->step,
                                .last = trainer->last,
                                .seconds = seconds_now() - trainer->begun,
                                .training_seconds = training,
                                .samples_per_second = (double)trainer->samples_done / fmax(training, 1e-9),
                                .communication = median(&trainer->communication),
                                .exposed = median(&trainer->exposed),
                                .serial = median(&trainer->serial),
                                .parameters = trainer->parameters,
                                .checks = trainer->checks,
                                .plan = trainer->plan,
                                .why = why};
}
