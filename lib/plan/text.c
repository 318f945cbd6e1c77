// SPDX-License-Identifier: BSD-3-Clause
/* The text form of a plan: one head line, then lanes of one step a line.
 *
 * What each kind of step carries is one table, used by the writer and the reader, so that the two cannot drift. The
 * reader takes bytes from anyone: it looks at nothing past the end, checks every number against its range, and takes
 * one block of memory that is bounded by the size of the text.
 */
#include "plan/text.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "plan/build.h"

enum { CHUNKS_MOST = 1 << 24, RANKS_MOST = 1 << 20, STEPS_MOST = 1 << 28 };

static const struct {
    const char *name;
    bool peer, to, from; /* what the step carries; AFTER: a lane and a step */
    uint8_t flags;       /* those it may have */
} kinds[HOOP_STEP_KINDS] = {
    [HOOP_STEP_COPY] = {"copy", false, true, true, 0},
    [HOOP_STEP_REDUCE] = {"reduce", false, true, true, HOOP_STEP_BEHIND},
    [HOOP_STEP_SEND] = {"send", true, false, true, HOOP_STEP_STAGED | HOOP_STEP_JOINED},
    [HOOP_STEP_RECV] = {"recv", true, true, false, HOOP_STEP_FORWARD | HOOP_STEP_NO_STORE | HOOP_STEP_JOINED},
    [HOOP_STEP_RECV_REDUCE] = {"recv_reduce", true, true, true,
                               HOOP_STEP_FORWARD | HOOP_STEP_NO_STORE | HOOP_STEP_JOINED | HOOP_STEP_BEHIND},
    [HOOP_STEP_AFTER] = {"after", true, false, false, 0},
};

static const char *const buffers[] = {[HOOP_IN] = "in", [HOOP_OUT] = "out", [HOOP_TMP] = "tmp"};

static const struct {
    const char *name;
    uint8_t flag;
} flags[] = {{"staged", HOOP_STEP_STAGED},
             {"forward", HOOP_STEP_FORWARD},
             {"no_store", HOOP_STEP_NO_STORE},
             {"joined", HOOP_STEP_JOINED},
             {"behind", HOOP_STEP_BEHIND}};

enum { BUFFERS = sizeof buffers / sizeof buffers[0], FLAGS = sizeof flags / sizeof flags[0] };

/* ---- writing ---- */

const char *hoop_buffer_name(unsigned buffer)
{
    return buffer < BUFFERS ? buffers[buffer] : "?";
}

void hoop_step_text(const struct hoop_step *step, char text[static HOOP_STEP_TEXT])
{
    const size_t size = HOOP_STEP_TEXT;
    int used;

    if (step->kind >= HOOP_STEP_KINDS) {
        snprintf(text, size, "kind %u", step->kind);
        return;
    }
    used = snprintf(text, size, "%s", kinds[step->kind].name);
    if (kinds[step->kind].peer)
        used += snprintf(text + used, size - (size_t)used, " %d", step->peer);
    if (step->kind == HOOP_STEP_AFTER)
        used += snprintf(text + used, size - (size_t)used, " %u", step->to);
    if (kinds[step->kind].to)
        used += snprintf(text + used, size - (size_t)used, " %s %u", hoop_buffer_name(step->to_buffer), step->to);
    if (kinds[step->kind].from)
        used += snprintf(text + used, size - (size_t)used, " %s %u", hoop_buffer_name(step->from_buffer), step->from);
    for (int i = 0; i < FLAGS; i++)
        if (step->flags & flags[i].flag)
            used += snprintf(text + used, size - (size_t)used, " %s", flags[i].name);
}

enum hoop_status hoop_plan_print(const struct hoop_plan *plan, FILE *file)
{
    const struct hoop_problem *problem = &plan->problem;
    char text[HOOP_STEP_TEXT], name[HOOP_ALGO_TEXT] = "-";

    if (plan->algo != NULL)
        hoop_algo_text(name, plan->algo, problem->inter, problem->intra);
    fprintf(file, "plan %s %s ranks %d rank %d root %d in_place %d channels %d grid %u tmp %u lanes %u\n", name,
            hoop_coll_name(problem->coll), problem->ranks, problem->rank, problem->root, problem->in_place,
            problem->channels, plan->grid, plan->tmp, plan->lanes);
    for (uint32_t lane = 0; lane < plan->lanes; lane++) {
        fprintf(file, "lane %u\n", lane);
        for (uint32_t i = 0; i < plan->lane[lane].steps; i++) {
            hoop_step_text(&plan->lane[lane].step[i], text);
            fprintf(file, "  %s\n", text);
        }
    }
    if (fflush(file) != 0 || ferror(file))
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "the plan cannot be written");
    return HOOP_OK;
}

/* ---- reading ---- */

struct word {
    const char *text;
    size_t length; /* 0: the line has no more words */
};

struct reader {
    const char *at, *end;
    int line; /* from 1 */
    struct hoop_plan *plan;
    uint32_t lanes_read;
    struct hoop_step *next; /* where the next step goes; there is room for one a line */
};

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct word next_word(struct reader *reader)
{
    struct word word;

    while (reader->at < reader->end && blank(*reader->at))
        reader->at++;
    word = (struct word){.text = reader->at};
    while (reader->at < reader->end && !blank(*reader->at) && *reader->at != '\n')
        reader->at++;
    word.length = (size_t)(reader->at - word.text);
    return word;
}

static bool is(struct word word, const char *text)
{
    return word.length == strlen(text) && memcmp(word.text, text, word.length) == 0;
}

/* Names line and word; unprintable bytes are shown as '?'. */
static enum hoop_status refuse(const struct reader *reader, struct word word, const char *wanted)
{
    char shown[40];
    const size_t length = word.length < sizeof shown ? word.length : sizeof shown - 1;

    for (size_t i = 0; i < length; i++)
        shown[i] = word.text[i] > ' ' && word.text[i] < 127 ? word.text[i] : '?';
    shown[length] = '\0';
    return hoop_fail(HOOP_ERR_ARG, "plan text, line %d: %s%s%s where %s should stand", reader->line,
                     length == 0 ? "the line ends" : "\"", shown, length == 0 ? "" : "\"", wanted);
}

static enum hoop_status read_number(struct reader *reader, const char *what, uint32_t least, uint32_t most,
                                    uint32_t *number)
{
    const struct word word = next_word(reader);
    uint64_t value = 0;
    bool good = word.length > 0 && word.length < 11;
    char wanted[80];

    for (size_t i = 0; good && i < word.length; i++) {
        good = word.text[i] >= '0' && word.text[i] <= '9';
        value = 10 * value + (uint64_t)(word.text[i] - '0');
    }
    if (good && value >= least && value <= most) {
        *number = (uint32_t)value;
        return HOOP_OK;
    }
    if (least > most)
        snprintf(wanted, sizeof wanted, "a %s (there are none)", what);
    else
        snprintf(wanted, sizeof wanted, "%s from %u to %u", what, least, most);
    return refuse(reader, word, wanted);
}

/* Keyword, then number. */
static enum hoop_status read_field(struct reader *reader, const char *name, uint32_t least, uint32_t most,
                                   uint32_t *number)
{
    const struct word word = next_word(reader);

    if (!is(word, name))
        return refuse(reader, word, name);
    return read_number(reader, name, least, most, number);
}

/* The line may hold no more; go to the next. */
static enum hoop_status end_line(struct reader *reader)
{
    const struct word word = next_word(reader);

    if (word.length > 0)
        return refuse(reader, word, "the end of the line");
    if (reader->at < reader->end)
        reader->at++;
    reader->line++;
    return HOOP_OK;
}

static enum hoop_status read_chunk(struct reader *reader, uint8_t *buffer, uint32_t *chunk)
{
    const struct word word = next_word(reader);
    uint8_t i = 0;

    while (i < BUFFERS && !is(word, buffers[i]))
        i++;
    if (i == BUFFERS)
        return refuse(reader, word, "a buffer (in, out, tmp)");
    *buffer = i;
    const uint32_t chunks = i == HOOP_TMP ? reader->plan->tmp : reader->plan->grid;
    return chunks == 0 ? read_number(reader, "tmp chunk", 1, 0, chunk)
                       : read_number(reader, "chunk", 0, chunks - 1, chunk);
}

static enum hoop_status read_flags(struct reader *reader, uint8_t allowed, uint8_t *set)
{
    for (;;) {
        const char *line = reader->at;
        const struct word word = next_word(reader);
        int i = 0;

        if (word.length == 0) {
            reader->at = line;
            return HOOP_OK;
        }
        while (i < FLAGS && !(is(word, flags[i].name) && (flags[i].flag & allowed) != 0))
            i++;
        if (i == FLAGS)
            return refuse(reader, word, "a flag of such a step, or the end of the line,");
        *set |= flags[i].flag;
    }
}

static enum hoop_status read_peer(struct reader *reader, struct hoop_step *step)
{
    uint32_t peer;
    enum hoop_status status;

    if (step->kind == HOOP_STEP_AFTER) {
        status = read_number(reader, "a lane", 0, reader->plan->lanes - 1, &peer);
        if (status == HOOP_OK)
            status = read_number(reader, "a step", 0, STEPS_MOST, &step->to);
    } else {
        status = read_number(reader, "a rank", 0, (uint32_t)reader->plan->problem.ranks - 1, &peer);
    }
    if (status == HOOP_OK)
        step->peer = (int32_t)peer;
    return status;
}

static enum hoop_status read_step(struct reader *reader, struct word word)
{
    struct hoop_step step = {0};
    enum hoop_status status = HOOP_OK;

    while (step.kind < HOOP_STEP_KINDS && !is(word, kinds[step.kind].name))
        step.kind++;
    if (step.kind == HOOP_STEP_KINDS)
        return refuse(reader, word, "a step (copy, reduce, send, recv, recv_reduce, after) or a lane");
    if (reader->lanes_read == 0)
        return refuse(reader, word, "\"lane 0\"");
    if (kinds[step.kind].peer)
        status = read_peer(reader, &step);
    if (status == HOOP_OK && kinds[step.kind].to)
        status = read_chunk(reader, &step.to_buffer, &step.to);
    if (status == HOOP_OK && kinds[step.kind].from)
        status = read_chunk(reader, &step.from_buffer, &step.from);
    if (status == HOOP_OK)
        status = read_flags(reader, kinds[step.kind].flags, &step.flags);
    if (status != HOOP_OK)
        return status;
    *reader->next++ = step;
    reader->plan->lane[reader->lanes_read - 1].steps++;
    return HOOP_OK;
}

static enum hoop_status read_lane(struct reader *reader)
{
    struct hoop_plan *plan = reader->plan;
    uint32_t lane;

    if (reader->lanes_read == plan->lanes)
        return hoop_fail(HOOP_ERR_ARG, "plan text, line %d: more lanes than the %u of the head", reader->line,
                         plan->lanes);
    const enum hoop_status status = read_number(reader, "lane", reader->lanes_read, reader->lanes_read, &lane);
    if (status != HOOP_OK)
        return status;
    plan->lane[reader->lanes_read++].step = reader->next;
    return HOOP_OK;
}

/* The words before the numbers: plan, algorithm ("-": none), collective. */
static enum hoop_status read_names(struct reader *reader, struct hoop_plan *head)
{
    struct word word = next_word(reader);
    int coll = 0;

    if (!is(word, "plan"))
        return refuse(reader, word, "\"plan\"");
    word = next_word(reader);
    char name[HOOP_ALGO_TEXT] = "";
    if (word.length < sizeof name)
        memcpy(name, word.text, word.length);
    hoop_algo_read(name, &head->algo, &head->problem.inter, &head->problem.intra);
    if (head->algo == NULL && !is(word, "-"))
        return refuse(reader, word, "an algorithm");
    word = next_word(reader);
    while (coll < HOOP_COLLS && !is(word, hoop_coll_name((enum hoop_coll)coll)))
        coll++;
    if (coll == HOOP_COLLS)
        return refuse(reader, word, "a collective");
    head->problem.coll = (enum hoop_coll)coll;
    return HOOP_OK;
}

static enum hoop_status read_head(struct reader *reader, struct hoop_plan *head)
{
    struct hoop_problem *problem = &head->problem;
    uint32_t ranks = 1, rank = 0, root = 0, in_place = 0, channels = 0;
    enum hoop_status status = read_names(reader, head);

    if (status == HOOP_OK)
        status = read_field(reader, "ranks", 1, RANKS_MOST, &ranks);
    if (status == HOOP_OK)
        status = read_field(reader, "rank", 0, ranks - 1, &rank);
    if (status == HOOP_OK)
        status = read_field(reader, "root", 0, ranks - 1, &root);
    if (status == HOOP_OK)
        status = read_field(reader, "in_place", 0, 1, &in_place);
    if (status == HOOP_OK)
        status = read_field(reader, "channels", 1, HOOP_MAX_CHANNELS, &channels);
    if (status == HOOP_OK)
        status = read_field(reader, "grid", 1, CHUNKS_MOST, &head->grid);
    if (status == HOOP_OK)
        status = read_field(reader, "tmp", 0, CHUNKS_MOST, &head->tmp);
    if (status == HOOP_OK)
        status = read_field(reader, "lanes", 0, HOOP_MAX_LANES, &head->lanes);
    if (status == HOOP_OK)
        status = end_line(reader);
    if (status != HOOP_OK)
        return status;
    problem->ranks = (int)ranks;
    problem->rank = (int)rank;
    problem->root = (int)root;
    problem->in_place = in_place != 0;
    problem->channels = (int)channels;
    if (hoop_coll_shape(problem->coll)->blocks && head->grid % ranks != 0)
        return hoop_fail(HOOP_ERR_ARG, "plan text: a grid of %u chunks cannot be cut into %u equal blocks", head->grid,
                         ranks);
    return HOOP_OK;
}

static enum hoop_status read_body(struct reader *reader)
{
    enum hoop_status status = HOOP_OK;

    while (status == HOOP_OK && reader->at < reader->end) {
        const struct word word = next_word(reader);

        if (is(word, "lane"))
            status = read_lane(reader);
        else if (word.length > 0)
            status = read_step(reader, word);
        if (status == HOOP_OK)
            status = end_line(reader);
    }
    if (status == HOOP_OK && reader->lanes_read < reader->plan->lanes)
        status = hoop_fail(HOOP_ERR_ARG, "plan text, line %d: the text ends after %u of %u lanes", reader->line,
                           reader->lanes_read, reader->plan->lanes);
    return status;
}

enum hoop_status hoop_plan_parse(struct hoop_plan **plan, const char *text, size_t size)
{
    struct reader reader = {.at = text, .end = text + size, .line = 1};
    struct hoop_plan head = {0};
    enum hoop_status status = read_head(&reader, &head);
    size_t lines = 1;

    if (status != HOOP_OK)
        return status;
    for (const char *at = reader.at; at < reader.end; at++)
        lines += *at == '\n';
    reader.plan =
        hoop_calloc(1, sizeof head + head.lanes * sizeof(struct hoop_lane_plan) + lines * sizeof(struct hoop_step));
    if (reader.plan == NULL)
        return HOOP_ERR_MEMORY;
    memcpy(reader.plan, &head, sizeof head);
    reader.next = (struct hoop_step *)(reader.plan->lane + head.lanes);
    status = read_body(&reader);
    if (status != HOOP_OK) {
        hoop_plan_free(reader.plan);
        return status;
    }
    hoop_plan_find_tmp(reader.plan);
    *plan = reader.plan;
    return HOOP_OK;
}
