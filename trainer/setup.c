// SPDX-License-Identifier: BSD-3-Clause
/* Getting ready: data, model, agreement between the ranks, and the same parameters everywhere. */
#include <cblas.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "fail.h"
#include "trainer.h"

enum { TEST_ROWS = 250 }; /* samples tested at a time, at least */

#define MIB (1024.0 * 1024.0)

static void plan_model(struct trainer *trainer)
{
    const struct options *options = trainer->options;
    size_t widths[MODEL_LAYERS + 1];
    const int hidden = options->hidden_layers;

    widths[0] = trainer->dataset.inputs;
    for (int i = 0; i < hidden; i++)
        widths[i + 1] = options->hidden[i];
    widths[hidden + 1] = (size_t)trainer->dataset.classes;
    model_plan(&trainer->model, hidden + 1, widths, options->activation);
    bucket_plan(&trainer->buckets, &trainer->model, (size_t)(options->first_bucket * MIB),
                (size_t)(options->bucket * MIB));
}

static int plan_steps(struct trainer *trainer)
{
    const struct options *options = trainer->options;
    const size_t batch = options->batch ? options->batch * (size_t)trainer->ranks : options->global_batch;
    const int code = sampler_make(&trainer->sampler, trainer->dataset.train.count, batch, trainer->rank, trainer->ranks,
                                  options->seed);

    trainer->steps = options->steps ? options->steps : (size_t)options->epochs * sampler_steps(&trainer->sampler);
    trainer->warmup = (size_t)(options->warmup * (double)trainer->steps);
    return code;
}

/* Everything that a rank can do by itself. */
static int prepare(struct trainer *trainer)
{
    const struct options *options = trainer->options;
    int code = report_open(&trainer->report, options, trainer->rank, trainer->ranks);

    if (code == TRAIN_OK)
        code = dataset_load(&trainer->dataset, options->data, options->seed);
    if (code == TRAIN_OK)
        code = plan_steps(trainer);
    if (code != TRAIN_OK)
        return code;
    plan_model(trainer);
    trainer->rows = sampler_share(&trainer->sampler) < TEST_ROWS ? TEST_ROWS : sampler_share(&trainer->sampler);
    trainer->inputs = aligned_alloc(64, (trainer->rows * trainer->dataset.inputs * sizeof(float) + 63) / 64 * 64);
    trainer->labels = malloc(trainer->rows);
    trainer->samples = malloc(trainer->rows * sizeof *trainer->samples);
    if (!trainer->inputs || !trainer->labels || !trainer->samples)
        return train_fail(TRAIN_RESOURCE, "no memory for a batch of %zu samples", trainer->rows);
    return optimizer_make(&trainer->optimizer, &trainer->model, options->momentum, options->decay);
}

/* Memory of the communicator and the stream. */
static int prepare_communication(struct trainer *trainer)
{
    void *values = NULL;
    enum hoop_status status = hoop_mem_alloc(trainer->comm, &values, trainer->model.values_count * sizeof(float));

    if (status != HOOP_OK)
        return train_fail_call(status, NULL, "memory for parameters");
    trainer->values = values;
    status = hoop_stream_create(&trainer->stream);
    if (status != HOOP_OK)
        return train_fail_call(status, NULL, "stream");
    const int code = bucket_make(&trainer->buckets, trainer->comm, trainer->stream);
    return code == TRAIN_OK ? model_make(&trainer->model, trainer->values, trainer->rows) : code;
}

/* What must be equal on all ranks, in the order in which differences are reported. */
static void describe(const struct trainer *trainer, struct agree *agree)
{
    const struct options *o = trainer->options;
    const struct dataset *data = &trainer->dataset;

    agree_line(agree, "version", "hoop-train %d", hoop_version());
    agree_line(agree, "seed", "%" PRIu64, o->seed);
    agree_line(agree, "data", "%s, %zu + %zu samples of %zu inputs, %d classes, digest %016" PRIx64, data->name,
               data->train.count, data->test.count, data->inputs, data->classes, dataset_digest(data));
    agree_line(agree, "batch", "%zu", trainer->sampler.batch);
    agree_line(agree, "steps", "%zu, warm-up %zu", trainer->steps, trainer->warmup);
    agree_line(agree, "optimizer", "lr %.17g momentum %.17g decay %.17g schedule %d activation %d", o->rate,
               o->momentum, o->decay, (int)o->schedule, (int)o->activation);
    agree_line(agree, "checks", "verify every %zu, target accuracy %.17g, overlap %d", o->verify_every,
               o->target_accuracy, o->overlap);
    for (int i = 0; i < trainer->model.tensors; i++) {
        const struct tensor *tensor = &trainer->model.tensor[i];

        agree_line(agree, "tensor", "%s float32 %zu x %zu in bucket %d", tensor->name, tensor->rows, tensor->columns,
                   trainer->buckets.of[i]);
    }
}

/* Rank 0 makes the parameters; the others get them. */
static int share_parameters(struct trainer *trainer)
{
    if (trainer->rank == 0)
        model_initialise(&trainer->model, trainer->options->seed);
    const enum hoop_status status =
        hoop_broadcast(trainer->values, trainer->values, trainer->model.values_count, HOOP_F32, 0, trainer->comm, NULL);
    if (status != HOOP_OK)
        return train_fail_call(status, trainer->comm, "broadcast of the initial parameters");
    const int code = agree_digests(&trainer->model, trainer->comm, &trainer->parameters);
    if (code == TRAIN_OK) {
        trainer->checks++;
        report_verified(&trainer->report, 0, trainer->parameters);
    }
    return code;
}

static void announce(struct trainer *trainer)
{
    char about[320], layers[128] = "";
    size_t at = 0;

    for (int i = 0; i <= trainer->model.layers && at < sizeof layers; i++)
        at += (size_t)snprintf(layers + at, sizeof layers - at, "%s%zu", i ? "-" : "", trainer->model.width[i]);
    snprintf(about, sizeof about, "%.80s, %s (%zu parameters, %d bucket%s), %d rank%s, global batch %zu",
             trainer->dataset.name, layers, trainer->model.parameters, trainer->buckets.buckets,
             trainer->buckets.buckets == 1 ? "" : "s", trainer->ranks, trainer->ranks == 1 ? "" : "s",
             trainer->sampler.batch);
    report_begin(&trainer->report, about, trainer->steps, sampler_steps(&trainer->sampler));
}

int trainer_setup(struct trainer *trainer, const struct options *options, struct hoop_comm *comm)
{
    struct agree *agree = calloc(1, sizeof *agree);
    int code = TRAIN_OK;

    *trainer =
        (struct trainer){.options = options, .comm = comm, .rank = hoop_comm_rank(comm), .ranks = hoop_comm_size(comm)};
    trainer->begun = seconds_now();
    openblas_set_num_threads(1); /* a rank is a core; several ranks share the machine */
    if (!agree)
        return train_fail(TRAIN_RESOURCE, "no memory for the settings");
    code = prepare(trainer);
    if (code == TRAIN_OK)
        code = prepare_communication(trainer);
    if (code == TRAIN_OK)
        describe(trainer, agree);
    code = agree_exchange(agree, code, comm);
    free(agree);
    if (code != TRAIN_OK)
        return code;
    announce(trainer);
    return share_parameters(trainer);
}

void trainer_free(struct trainer *trainer)
{
    hoop_stream_destroy(trainer->stream);
    bucket_free(&trainer->buckets);
    if (trainer->values)
        hoop_mem_free(trainer->comm, trainer->values);
    model_free(&trainer->model);
    optimizer_free(&trainer->optimizer);
    sampler_free(&trainer->sampler);
    dataset_free(&trainer->dataset);
    report_free(&trainer->report);
    free(trainer->inputs);
    free(trainer->labels);
    free(trainer->samples);
    *trainer = (struct trainer){0};
}
