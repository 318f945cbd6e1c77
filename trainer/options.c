// SPDX-License-Identifier: BSD-3-Clause
/* See options.h. Numbers are parsed by one table of fields with their ranges. */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset.h"
#include "fail.h"
#include "manual.h"

enum key {
    KEY_DATA = 'd',
    KEY_BATCH = 'b',
    KEY_GLOBAL_BATCH = 'g',
    KEY_HIDDEN = 'm',
    KEY_EPOCHS = 'e',
    KEY_STEPS = 's',
    KEY_OUT = 'o',
    KEY_LOG_EVERY = 'l',
    KEY_JSON = 'j',
    KEY_ACTIVATION = 256,
    KEY_RATE,
    KEY_MOMENTUM,
    KEY_DECAY,
    KEY_SCHEDULE,
    KEY_WARMUP,
    KEY_SEED,
    KEY_TARGET,
    KEY_FIRST_BUCKET,
    KEY_BUCKET,
    KEY_OVERLAP,
    KEY_VERIFY_EVERY
};

enum group { GROUP_DATA = 1, GROUP_MODEL, GROUP_RUN, GROUP_COMMUNICATION, GROUP_OUTPUT };

static const struct argp_option table[] = {
    {.doc = "What to learn:", .group = GROUP_DATA},
    {"data", KEY_DATA, "WHAT", 0,
     "fashion-mnist (default; from the package dataset-fashion-mnist), synthetic (made on the spot, 12,000 images), or "
     "idx:FOLDER with train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
     "t10k-labels-idx1-ubyte, "
     "plain or .gz",
     0},
    {"global-batch", KEY_GLOBAL_BATCH, "N", 0,
     "samples of a step over all ranks, split among them (default 128). The same global batch gives the same loss "
     "curve on any "
     "number of ranks",
     0},
    {"batch", KEY_BATCH, "N", 0, "samples of a step on each rank, instead of --global-batch", 0},
    {.doc = "Model and optimizer:", .group = GROUP_MODEL},
    {"hidden", KEY_HIDDEN, "LIST", 0,
     "widths of the hidden layers, with commas, or none (default 512,512). The output is softmax with cross "
     "entropy at the "
     "end",
     0},
    {"activation", KEY_ACTIVATION, "KIND", 0,
     "smooth (default): ReLU with a rounded corner, so that runs on different numbers of ranks, which round "
     "differently, stay together; or relu",
     0},
    {"lr", KEY_RATE, "RATE", 0, "learning rate after the warm-up (default 0.02)", 0},
    {"momentum", KEY_MOMENTUM, "M", 0, "momentum, 0 to below 1 (default 0.9)", 0},
    {"weight-decay", KEY_DECAY, "D", 0, "weight decay, not applied to biases (default 0.0001)", 0},
    {"schedule", KEY_SCHEDULE, "KIND", 0,
     "learning rate after the warm-up: cosine (default) or linear, both falling to 0 at the last step, or constant", 0},
    {"warmup", KEY_WARMUP, "PART", 0, "part of all steps over which the rate rises from 0, 0 to 1 (default 0.05)", 0},
    {.doc = "Length and reproducibility:", .group = GROUP_RUN},
    {"epochs", KEY_EPOCHS, "N", 0, "passes over the training samples (default 5)", 0},
    {"steps", KEY_STEPS, "N", 0, "stop after N steps instead of whole epochs", 0},
    {"seed", KEY_SEED, "N", 0, "of initial parameters, sample order and synthetic data (default 1)", 0},
    {"target-accuracy", KEY_TARGET, "A", 0,
     "stop as soon as the test accuracy is A (0 to 1) or more; end with code 3 if it never is", 0},
    {.doc = "Communication:", .group = GROUP_COMMUNICATION},
    {"first-bucket", KEY_FIRST_BUCKET, "MIB", 0,
     "close the first gradient bucket when it reaches this size (default 1): small, so that communication begins early",
     0},
    {"bucket", KEY_BUCKET, "MIB", 0, "size of the other buckets (default 25)", 0},
    {"overlap", KEY_OVERLAP, "on|off", 0, "reduce buckets while the backward pass goes on (default), or after it", 0},
    {"verify-every", KEY_VERIFY_EVERY, "N", 0,
     "compare the parameters of all ranks every N steps (default 100; 0: only at the end)", 0},
    {.doc = "Results:", .group = GROUP_OUTPUT},
    {"out", KEY_OUT, "DIR", 0,
     "folder for curves.svg (loss and accuracy) and log.jsonl (every step), made if missing (default train-out)", 0},
    {"log-every", KEY_LOG_EVERY, "N", 0, "print a line every N steps (default 50; 0: none)", 0},
    {"json", KEY_JSON, NULL, 0, "print JSON lines instead of text", 0},
    {.doc = NULL}};

static const char description[] =
    "Train an image classifier on one or many ranks, data-parallel, with hoop's collectives.\v"
    "Alone it runs on one rank; under hooprun on several. Every rank computes the gradients of its share of the batch; "
    "buckets of "
    "gradients are all-reduced in the background while the backward pass goes on.";

static const struct hoop_manual_section sections[] = {
    {"EXAMPLES", "  hooprun -n 2 hoop-train\n"
                 "  hooprun -n 4 hoop-train --data synthetic --epochs 3 --out four\n"
                 "  hoop-train --hidden 256,128 --steps 1000 --log-every 10 --json"},
    {"OUTPUT", "A step line reads: step 50/2345 ep 1 loss 0.512345 acc 0.8125 gnorm 1.210 lr 8.55e-03 samp/s 31000 "
               "data 0.10ms fwd "
               "0.90 bwd 1.80 comm 0.60(exp 0.10) opt 0.30\n"
               "loss, acc\tmean loss and accuracy of the step's whole batch, over all ranks, before the update\n"
               "gnorm\tEuclidean norm of the whole gradient\n"
               "lr\tlearning rate of the update\n"
               "samp/s\tsamples a second of all ranks, since the line before\n"
               "data ... opt\ttimes of rank 0 in this step, in milliseconds\n"
               "comm\twhat the all-reduces took in the last step that was measured without overlap (one step in 64)\n"
               "exp\twhat of it was exposed: how long the step waited after its backward pass\n"
               "\n"
               "Lines that begin with eval tell the test accuracy after each epoch, lines that begin with verify that "
               "the parameters "
               "were compared and are equal on all ranks. The folder of --out gets curves.svg and log.jsonl, which has "
               "every step "
               "with all digits."},
    {"EXIT STATUS", "0\ttrained\n"
                    "1\twrong usage, launcher's environment, or no folder for the results\n"
                    "2\tthe data are missing or broken\n"
                    "3\tloss or gradient not finite, or --target-accuracy not reached\n"
                    "4\tthe ranks disagree: options, data, calls or parameters\n"
                    "5\ta peer died, left or came too late\n"
                    "7\tmemory, disk or a system call\n"
                    "130, 143\tstopped by SIGINT or SIGTERM, after the step, on all ranks together"},
    {NULL, NULL},
};

static const struct hoop_manual_words completions[] = {
    {"data", "fashion-mnist synthetic idx:"},
    {"activation", "smooth relu"},
    {"schedule", "cosine linear constant"},
    {"overlap", "on off"},
    {"out", "@directory"},
    {NULL, NULL},
};

enum kind { KIND_SIZE, KIND_SEED, KIND_INT, KIND_REAL };

/* An option that is a number: where it goes and what it may be. */
struct field {
    int key;
    enum kind kind;
    size_t offset;
    double least, most;
};

static const struct field fields[] = {{KEY_GLOBAL_BATCH, KIND_SIZE, offsetof(struct options, global_batch), 1, 1 << 20},
                                      {KEY_BATCH, KIND_SIZE, offsetof(struct options, batch), 1, 1 << 20},
                                      {KEY_RATE, KIND_REAL, offsetof(struct options, rate), 1e-12, 1e6},
                                      {KEY_MOMENTUM, KIND_REAL, offsetof(struct options, momentum), 0, 0.9999},
                                      {KEY_DECAY, KIND_REAL, offsetof(struct options, decay), 0, 1},
                                      {KEY_WARMUP, KIND_REAL, offsetof(struct options, warmup), 0, 1},
                                      {KEY_EPOCHS, KIND_INT, offsetof(struct options, epochs), 1, 100000},
                                      {KEY_STEPS, KIND_SIZE, offsetof(struct options, steps), 1, 1e9},
                                      {KEY_SEED, KIND_SEED, offsetof(struct options, seed), 0, 9007199254740992.0},
                                      {KEY_TARGET, KIND_REAL, offsetof(struct options, target_accuracy), 0.0001, 1},
                                      {KEY_FIRST_BUCKET, KIND_REAL, offsetof(struct options, first_bucket), 0, 65536},
                                      {KEY_BUCKET, KIND_REAL, offsetof(struct options, bucket), 0, 65536},
                                      {KEY_VERIFY_EVERY, KIND_SIZE, offsetof(struct options, verify_every), 0, 1e9},
                                      {KEY_LOG_EVERY, KIND_SIZE, offsetof(struct options, log_every), 0, 1e9}};

/* The name of an option for messages. */
static const char *name_of(int key)
{
    for (const struct argp_option *option = table; option->name || option->doc; option++)
        if (option->key == key)
            return option->name;
    return "?";
}

static void set_number(const struct field *field, const char *text, struct options *options, struct argp_state *state)
{
    void *where = (char *)options + field->offset;
    char *end;

    errno = 0;
    const double number = strtod(text, &end);
    if (end == text || *end || !isfinite(number))
        argp_error(state, "--%s=%s: not a number", name_of(field->key), text);
    else if (number < field->least || number > field->most)
        argp_error(state, "--%s=%s: must be between %.15g and %.15g", name_of(field->key), text, field->least,
                   field->most);
    else if (field->kind != KIND_REAL && floor(number) < number)
        argp_error(state, "--%s=%s: must be a whole number", name_of(field->key), text);
    else if (field->kind == KIND_REAL)
        *(double *)where = number;
    else if (field->kind == KIND_INT)
        *(int *)where = (int)number;
    else if (field->kind == KIND_SEED)
        *(uint64_t *)where = (uint64_t)number;
    else
        *(size_t *)where = (size_t)number;
}

static void set_hidden(const char *text, struct options *options, struct argp_state *state)
{
    const char *at = text;

    options->hidden_layers = 0;
    if (!strcmp(text, "none"))
        return;
    do {
        const size_t digits = strspn(at, "0123456789");
        const unsigned long width = strtoul(at, NULL, 10);

        if (digits == 0 || digits > 5 || width < 1 || width > 65536 || (at[digits] && at[digits] != ','))
            argp_error(state, "--hidden=%s: needs widths from 1 to 65536 with commas between, such as 512,256, or none",
                       text);
        if (options->hidden_layers == MODEL_LAYERS - 1)
            argp_error(state, "--hidden=%s: at most %d hidden layers", text, MODEL_LAYERS - 1);
        options->hidden[options->hidden_layers++] = width;
        at += digits;
    } while (*at++ == ',');
}

/* The place of text among words; a usage error if it is none of them. */
static int word(int key, const char *text, const char *const *words, struct argp_state *state)
{
    char all[128] = "";
    size_t at = 0;

    for (int i = 0; words[i]; i++) {
        if (!strcmp(text, words[i]))
            return i;
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", i ? ", " : "", words[i]);
    }
    argp_error(state, "--%s=%s: must be one of %s", name_of(key), text, all);
    return 0;
}

static void finish(struct options *options, struct argp_state *state)
{
    if (options->batch && options->global_batch)
        argp_error(state, "give --batch (of each rank) or --global-batch (of all), not both");
    if (!options->batch && !options->global_batch)
        options->global_batch = 128;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    static const char *const schedules[] = {"constant", "linear", "cosine", NULL}; /* as enum schedule */
    static const char *const activations[] = {"relu", "smooth", NULL};             /* as enum activation */
    static const char *const switches[] = {"off", "on", NULL};
    struct options *options = state->input;

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].key == key) {
            set_number(&fields[i], text, options, state);
            return 0;
        }
    switch (key) {
    case ARGP_KEY_INIT:
        argp_err_exit_status = TRAIN_USAGE;
        return 0;
    case KEY_DATA:
        if (!dataset_known(text))
            argp_error(state, "--data=%s: must be fashion-mnist, synthetic or idx:FOLDER", text);
        options->data = text;
        return 0;
    case KEY_HIDDEN:
        set_hidden(text, options, state);
        return 0;
    case KEY_ACTIVATION:
        options->activation = (enum activation)word(key, text, activations, state);
        return 0;
    case KEY_SCHEDULE:
        options->schedule = (enum schedule)word(key, text, schedules, state);
        return 0;
    case KEY_OVERLAP:
        options->overlap = word(key, text, switches, state);
        return 0;
    case KEY_OUT:
        options->out = text;
        return 0;
    case KEY_JSON:
        options->json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument %s", text);
        return 0;
    case ARGP_KEY_END:
        finish(options, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void options_parse(struct options *options, int count, char **words)
{
    static const struct argp argp = {.options = table, .parser = parse, .doc = description};
    static const struct hoop_manual manual = {
        "hoop-train", "train an image classifier on many ranks", &argp, sections, completions, true};

    *options = (struct options){
        .data = "fashion-mnist",
        .hidden_layers = 2,
        .hidden = {512, 512},
        .activation = ACTIVATION_SMOOTH,
        .epochs = 5,
        .seed = 1,
        .rate = 0.02,
        .momentum = 0.9,
        .decay = 1e-4,
        .schedule = SCHEDULE_COSINE,
        .warmup = 0.05,
        .first_bucket = 1,
        .bucket = 25,
        .overlap = true,
        .verify_every = 100,
        .out = "train-out",
        .log_every = 50,
    };
    hoop_manual_parse(&manual, count, words, 0, options);
}
