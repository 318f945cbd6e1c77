// SPDX-License-Identifier: BSD-3-Clause
/* The cost model: see hoop/plan.h.
 *
 * A model file is text of at most 64 KiB:
 *
 *     hoop-model 1
 *     # a remark
 *     hop 412.5
 *     copy 9.75
 *
 * The first line names format and version. Then one constant a line, as model.def names them: a decimal number with at
 * most nine digits before and three behind the point, read and written without the C library's locale. What is not named keeps its built-in
 * value; an unknown or repeated name is an error.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "hoop/plan.h"
#include "plan/crossing.h"
#include "plan/lines.h"
#include "plan/model.h"

enum { CONSTANTS = HOOP_MODEL_CONSTANTS };

static const struct constant {
    const char *name;
    size_t offset;
    double standard, least, most;
} constants[CONSTANTS] = {
#define CONSTANT(name, unit, standard, least, most, help) \
    {#name, offsetof(struct hoop_model, name), standard, least, most},
#include "plan/model.def"
#undef CONSTANT
};

bool hoop_constant_get(int i, struct hoop_constant *constant)
{
    static const struct hoop_constant all[CONSTANTS] = {
#define CONSTANT(name, unit, standard, least, most, help) \
    {#name, unit, help, offsetof(struct hoop_model, name), least, most},
#include "plan/model.def"
#undef CONSTANT
    };

    if (i < 0 || i >= CONSTANTS)
        return false;
    *constant = all[i];
    return true;
}

static double *field(struct hoop_model *model, int i)
{
    return (double *)(void *)((char *)model + constants[i].offset);
}

double hoop_model_get(const struct hoop_model *model, int i)
{
    return *(const double *)(const void *)((const char *)model + constants[i].offset);
}

struct hoop_model hoop_model_builtin(void)
{
    struct hoop_model model = {.measured = false};

    for (int i = 0; i < CONSTANTS; i++)
        *field(&model, i) = constants[i].standard;
    return model;
}

bool hoop_model_valid(const struct hoop_model *model)
{
    for (int i = 0; i < CONSTANTS; i++) {
        const double value = hoop_model_get(model, i);
        if (!(value >= constants[i].least && value <= constants[i].most)) /* NaN is neither */
            return false;
    }
    return true;
}

/* ---- prediction ---- */

/* Work for messages across. Where ranks take turns on the cores, they have to be done with all of them, whoever sends most, and each
 * wakes a rank that sleeps. */
static double work_across(const struct hoop_model *model, struct hoop_crossing crossing, double crowd)
{
    const double all = crowd * crossing.mean;

    if (crowd <= 1)
        return crossing.messages * model->post_across;
    return (all > crossing.messages ? all : crossing.messages) * (model->post_across + model->hop_crowded);
}

/* What crosses from group to group counts by itself. A rank has one port, so it sends that after or before the rest. */
static void cross(struct hoop_prediction *prediction, const struct hoop_model *model, struct hoop_crossing crossing,
                  double bytes, double hop, double crowd)
{
    const double far = hop > model->hop_across ? hop : model->hop_across,
                 own = crowd * crossing.volume * bytes / model->copy, shared = crossing.load * bytes / model->uplink;

    prediction->hops = crossing.near * hop + crossing.far * far;
    prediction->copy = prediction->copy > own ? prediction->copy - own : 0;
    prediction->across = own > shared ? own : shared;
    prediction->messages += work_across(model, crossing, crowd) - crowd * crossing.messages * model->post;
}

struct hoop_prediction hoop_model_predict(const struct hoop_model *model, const struct hoop_algo *algo,
                                          const struct hoop_problem *problem, size_t bytes, size_t frame, int cores)
{
    const struct hoop_cost cost = algo->cost(problem);
    const double crowd = problem->ranks > cores ? (double)problem->ranks / cores : 1;
    const double moved = cost.volume * (double)bytes, reduced = cost.reduced * (double)bytes;
    const double hop = crowd > 1 ? model->hop_crowded : model->hop;
    struct hoop_prediction prediction = {
        .hops = cost.depth * hop,
        .messages = crowd * (cost.messages * model->post + (moved / (double)frame + cost.joined) * model->slot),
        .copy = crowd * moved / model->copy,
        .reduce = crowd * reduced / model->reduce,
    };

    if (problem->groups)
        cross(&prediction, model, hoop_crossing_of(model, algo, problem, &cost), (double)bytes, hop, crowd);
    prediction.time = prediction.hops + prediction.messages + prediction.copy + prediction.across + prediction.reduce;
    return prediction;
}

/* ---- model files ---- */

/* Digits, at most nine, and up to three behind a point. */
static bool read_number(struct hoop_word word, double *value)
{
    uint64_t thousandths = 0;
    size_t digits = 0, behind = 0, i = 0;

    for (; i < word.length && word.text[i] >= '0' && word.text[i] <= '9'; i++, digits++)
        thousandths = thousandths * 10 + (uint64_t)(word.text[i] - '0');
    if (digits == 0 || digits > 9)
        return false;
    if (i < word.length && word.text[i] == '.')
        for (i++; i < word.length && word.text[i] >= '0' && word.text[i] <= '9' && behind < 3; i++, behind++)
            thousandths = thousandths * 10 + (uint64_t)(word.text[i] - '0');
    for (size_t places = behind; places < 3; places++)
        thousandths *= 10;
    *value = (double)thousandths / 1000;
    return i == word.length && word.text[word.length - 1] != '.';
}

static enum hoop_status read_constant(struct hoop_model *model, struct hoop_word line, int number, bool seen[CONSTANTS])
{
    const struct hoop_word name = hoop_word_next(&line), value = hoop_word_next(&line), more = hoop_word_next(&line);
    char text[33];
    int i = 0;

    if (name.length == 0)
        return HOOP_OK;
    while (i < CONSTANTS && !hoop_word_is(name, constants[i].name))
        i++;
    if (i == CONSTANTS)
        return hoop_fail(HOOP_ERR_ARG, "line %d: %s is no constant of the model", number, hoop_word_shown(name, text));
    if (seen[i])
        return hoop_fail(HOOP_ERR_ARG, "line %d: %s is given twice", number, constants[i].name);
    seen[i] = true;
    if (more.length > 0)
        return hoop_fail(HOOP_ERR_ARG, "line %d: %s follows the number of %s", number, hoop_word_shown(more, text),
                         constants[i].name);
    double *to = field(model, i);
    if (!read_number(value, to) || *to < constants[i].least || *to > constants[i].most)
        return hoop_fail(HOOP_ERR_ARG, "line %d: %s is no number that %s can have", number,
                         hoop_word_shown(value, text), constants[i].name);
    return HOOP_OK;
}

enum hoop_status hoop_model_parse(struct hoop_model *model, const char *text, size_t size)
{
    struct hoop_model read = hoop_model_builtin();
    struct hoop_lines reader = {text, text + size, 0};
    bool seen[CONSTANTS] = {false};
    struct hoop_word line;

    if (size > HOOP_MODEL_FILE)
        return hoop_fail(HOOP_ERR_ARG, "%zu bytes are too many for a model; %d are allowed", size, HOOP_MODEL_FILE);
    if (size == 0 || !hoop_line_next(&reader, &line))
        return hoop_fail(HOOP_ERR_ARG, "the model is empty; it begins with \"hoop-model %d\"", HOOP_MODEL_VERSION);
    const struct hoop_word format = hoop_word_next(&line), version = hoop_word_next(&line),
                           more = hoop_word_next(&line);
    if (!hoop_word_is(format, "hoop-model") || !hoop_word_is(version, "1") || more.length > 0)
        return hoop_fail(HOOP_ERR_ARG, "line 1: a model begins with \"hoop-model %d\"", HOOP_MODEL_VERSION);
    while (hoop_line_next(&reader, &line)) {
        const enum hoop_status status = read_constant(&read, line, reader.line, seen);
        if (status != HOOP_OK)
            return status;
    }
    read.measured = true;
    *model = read;
    return HOOP_OK;
}

/* In thousandths, as the file has them: printf of a fraction would follow the locale. */
enum hoop_status hoop_model_print(const struct hoop_model *model, FILE *file)
{
    int written = fprintf(file, "hoop-model %d\n", HOOP_MODEL_VERSION);

    for (int i = 0; i < CONSTANTS && written >= 0; i++) {
        const uint64_t thousandths = (uint64_t)(hoop_model_get(model, i) * 1000 + 0.5);
        written =
            fprintf(file, "%s %" PRIu64 ".%03" PRIu64 "\n", constants[i].name, thousandths / 1000, thousandths % 1000);
    }
    return written < 0 || fflush(file) != 0 ? hoop_fail_errno(HOOP_ERR_SYSTEM, "the model cannot be written") : HOOP_OK;
}
