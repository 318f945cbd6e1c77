// SPDX-License-Identifier: BSD-3-Clause
/* Explaining a choice: every candidate with its predicted time and where the time goes, who was left out and why, what was
 * chosen for which reason and over which sizes, what setting would change it, and predicted against measured.
 *
 * First the facts are gathered, by asking the same functions that choose for a call; then they are written, as text or as
 * JSON. Numbers are written as whole ones (times in ns, or us with three digits), since printf of a fraction follows the
 * locale.
 */
#include "plan/explain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/status.h"
#include "plan/choose.h"
#include "plan/model.h"

enum { MOST = 64 };

struct candidate {
    const struct hoop_algo *algo;
    char name[HOOP_ALGO_TEXT]; /* with its parts */
    bool fit;
    const char *why; /* not fit: the reason */
    struct hoop_prediction predicted;
};

struct facts {
    const struct hoop_choice *choice;
    const struct hoop_problem *problem;
    const struct hoop_experience *experience;
    size_t bytes;
    struct candidate candidate[MOST];
    int candidates;
    struct hoop_decision decision;
    size_t first, last;           /* sizes for which the decision is the same; last SIZE_MAX: without end */
    struct hoop_decision by_cost; /* what cost alone would choose */
};

/* A text that grows in the caller's buffer, and counts on when it is full. */
struct text {
    char *to;
    size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int length = vsnprintf(text->used < text->size ? text->to + text->used : NULL,
                                 text->used < text->size ? text->size - text->used : 0, format, arguments);
    va_end(arguments);
    text->used += length > 0 ? (size_t)length : 0;
}

static uint64_t whole(double ns)
{
    return (uint64_t)(ns + 0.5);
}

/* ---- gathering ---- */

static const char *unfit(const struct hoop_algo *algo, const struct hoop_problem *problem)
{
    struct hoop_problem other = *problem;

    if (algo->composed && problem->groups == NULL)
        return "needs groups of ranks, HOOP_GROUPS";
    if (algo->applicable(problem))
        return "sums in another order, HOOP_DETERMINISTIC";
    other.in_place = !other.in_place;
    if (algo->applicable(&other))
        return problem->in_place ? "not in place" : "only in place";
    for (other.ranks = 2; other.ranks <= 16; other.ranks++)
        if (algo->applicable(&other))
            return "not for this number of ranks";
    return "does not do this collective";
}

static void gather_candidates(struct facts *facts)
{
    const struct hoop_choice *choice = facts->choice;
    const struct hoop_algo *algo;

    for (int i = 0; i < MOST && (algo = hoop_algo_get(i)) != NULL; i++) {
        struct candidate *candidate = &facts->candidate[facts->candidates++];
        const struct hoop_problem its = hoop_choice_problem(choice, algo, facts->problem, facts->bytes);

        *candidate =
            (struct candidate){.algo = algo, .fit = algo->applicable(&its) && hoop_choice_admits(choice, algo, &its)};
        hoop_algo_text(candidate->name, algo, its.inter, its.intra);
        if (candidate->fit)
            candidate->predicted =
                hoop_model_predict(&choice->model, algo, &its, facts->bytes, choice->frame, choice->cores);
        else
            candidate->why = unfit(algo, &its);
    }
}

static bool same(const struct facts *facts, size_t bytes)
{
    const struct hoop_decision other = hoop_choose(facts->choice, facts->problem, bytes);

    return other.algo == facts->decision.algo && other.inter == facts->decision.inter &&
           other.intra == facts->decision.intra && other.reason == facts->decision.reason;
}

/* The sizes around facts->bytes up to the nearest changes, first doubled or halved, then cut in two until it is exact. */
static void gather_range(struct facts *facts)
{
    size_t good = facts->bytes, bad = facts->bytes;

    while (bad > 0 && same(facts, bad))
        good = bad, bad /= 2;
    facts->first = bad == 0 && same(facts, 0) ? 0 : good;
    while (facts->first > 0 && good - bad > 1) {
        const size_t middle = bad + (good - bad) / 2;
        *(same(facts, middle) ? &good : &bad) = middle;
        facts->first = good;
    }
    for (good = bad = facts->bytes; bad < SIZE_MAX / 4 && same(facts, bad); bad = bad * 2 + 1)
        good = bad;
    facts->last = bad >= SIZE_MAX / 4 ? SIZE_MAX : good;
    while (facts->last < SIZE_MAX && bad - good > 1) {
        const size_t middle = good + (bad - good) / 2;
        *(same(facts, middle) ? &good : &bad) = middle;
        facts->last = good;
    }
}

static void gather(struct facts *facts)
{
    struct hoop_choice free = *facts->choice;

    gather_candidates(facts);
    facts->decision = hoop_choose(facts->choice, facts->problem, facts->bytes);
    gather_range(facts);
    free.forced = NULL;
    free.flat_max = 0;
    facts->by_cost = hoop_choose(&free, facts->problem, facts->bytes);
}

static bool alone(const struct facts *facts)
{
    return facts->problem->ranks == 1;
}

/* Has HOOP_DETERMINISTIC excluded anybody? */
static bool bound(const struct facts *facts)
{
    for (int i = 0; i < facts->candidates; i++)
        if (!facts->candidate[i].fit && facts->candidate[i].algo->applicable(facts->problem))
            return true;
    return false;
}

static void reason(const struct facts *facts, char text[static 256])
{
    const struct hoop_choice *choice = facts->choice;

    if (alone(facts))
        snprintf(text, 256, "a rank alone copies its data and runs no plan");
    else if (facts->decision.reason == HOOP_BY_FORCE)
        snprintf(text, 256, "HOOP_ALGO=%s asks for it", choice->forced->name);
    else if (facts->decision.reason == HOOP_BY_SIZE)
        snprintf(text, 256, "at most HOOP_FLAT_MAX=%zu bytes a rank are exchanged in one step%s", choice->flat_max,
                 choice->forced ? ", and HOOP_ALGO cannot serve this collective" : "");
    else
        snprintf(text, 256, "least predicted time%s%s", bound(facts) ? " of those that sum in rank order" : "",
                 choice->forced ? ", since HOOP_ALGO cannot serve this collective" : "");
}

/* What would change the choice: calls say for each setting and what it gives. */
typedef void change_writer(struct text *text, const char *setting, const char *gives);

static void each_change(const struct facts *facts, struct text *text, change_writer *write)
{
    const struct hoop_choice *choice = facts->choice;
    const size_t published = hoop_choice_published(facts->problem, facts->bytes);
    char setting[16 + HOOP_ALGO_TEXT];

    if (alone(facts))
        return;
    if (choice->forced && facts->decision.reason == HOOP_BY_FORCE) {
        struct hoop_choice free = *choice;
        free.forced = NULL;
        write(text, "HOOP_ALGO=auto", hoop_choose(&free, facts->problem, facts->bytes).algo->name);
    }
    for (int i = 0; i < facts->candidates; i++)
        if (facts->candidate[i].fit && facts->candidate[i].algo != facts->decision.algo) {
            snprintf(setting, sizeof setting, "HOOP_ALGO=%s", facts->candidate[i].name);
            write(text, setting, facts->candidate[i].name);
        }
    if (bound(facts)) {
        struct hoop_choice free = *choice;
        free.deterministic = false;
        const struct hoop_algo *gives = hoop_choose(&free, facts->problem, facts->bytes).algo;
        if (gives != facts->decision.algo)
            write(text, "HOOP_DETERMINISTIC=0", gives->name);
    }
    if (facts->decision.reason == HOOP_BY_SIZE && facts->by_cost.algo != choice->flat)
        write(text, "HOOP_FLAT_MAX=0", facts->by_cost.algo->name);
    if (facts->decision.reason == HOOP_BY_COST && facts->decision.algo != choice->flat && published <= 65536 &&
        !choice->far) {
        snprintf(setting, sizeof setting, "HOOP_FLAT_MAX=%zu", published);
        write(text, setting, choice->flat->name);
    }
}

static const char *groups_text(const struct facts *facts, char text[HOOP_GROUPS_TEXT])
{
    hoop_groups_text(text, facts->choice->groups);
    return text;
}

static const char *chosen(const struct facts *facts, char name[HOOP_ALGO_TEXT])
{
    hoop_algo_text(name, facts->decision.algo, facts->decision.inter, facts->decision.intra);
    return name;
}

/* ---- text ---- */

static void say_us(struct text *text, double ns)
{
    say(text, "%8" PRIu64 ".%03" PRIu64, whole(ns) / 1000, whole(ns) % 1000);
}

static void text_candidates(const struct facts *facts, struct text *text)
{
    say(text,
        "  candidate              predicted =      hops +  messages +      copy +    across +    reduce   (us)\n");
    for (int i = 0; i < facts->candidates; i++) {
        const struct candidate *candidate = &facts->candidate[i];
        say(text, "%c %-20s", candidate->algo == facts->decision.algo ? '*' : ' ', candidate->name);
        if (candidate->fit) {
            const struct hoop_prediction *predicted = &candidate->predicted;
            const double part[] = {predicted->time, predicted->hops,   predicted->messages,
                                   predicted->copy, predicted->across, predicted->reduce};
            for (int p = 0; p < 6; p++)
                say_us(text, part[p]);
        } else {
            say(text, "  left out: %s", candidate->why);
        }
        say(text, "\n");
    }
}

static void text_change(struct text *text, const char *setting, const char *gives)
{
    say(text, "change     %s gives %s\n", setting, gives);
}

static double predicted_of(const struct facts *facts)
{
    for (int i = 0; i < facts->candidates; i++)
        if (facts->candidate[i].algo == facts->decision.algo)
            return facts->candidate[i].predicted.time;
    return 0;
}

static void text_measured(const struct facts *facts, struct text *text)
{
    if (facts->experience == NULL)
        return;
    const struct hoop_measured *measured = &facts->experience->plans;
    if (measured->calls == 0) {
        say(text, "measured   no such call was timed%s\n",
            facts->decision.reason == HOOP_BY_SIZE ? " (the exchange in one step is not)" : "");
        return;
    }
    say(text, "measured  ");
    say_us(text, (double)measured->least_ns);
    say(text, " us at best, ");
    say_us(text, (double)measured->mean_ns);
    say(text, " us on average over %" PRIu64 " calls on this rank; predicted ", measured->calls);
    say_us(text, predicted_of(facts));
    say(text, " us\n");
}

/* Would the ranks work in each other's memory, where they can? */
static bool direct(const struct facts *facts)
{
    return !alone(facts) && facts->problem->coll != HOOP_BARRIER &&
           facts->bytes >= hoop_choice_direct_least(facts->choice, facts->problem->ranks);
}

static bool staged(const struct facts *facts)
{
    const bool can = facts->problem->coll == HOOP_ALL_REDUCE || facts->problem->coll == HOOP_BROADCAST;

    return can && direct(facts) && facts->choice->stage > 0 && facts->bytes > facts->choice->flat_max;
}

static void text_direct(const struct facts *facts, struct text *text)
{
    const struct hoop_measured *measured = facts->experience ? &facts->experience->direct : NULL;

    if (!direct(facts))
        return;
    say(text,
        "direct     if all ranks' buffers are of hoop_mem_alloc, they work in each other's memory, without a plan; "
        "HOOP_DIRECT_MIN=16T forbids it\n");
    if (staged(facts))
        say(text,
            "           else %s where the others can read it, a stage, without a plan, too; HOOP_STAGE=0 forbids "
            "that\n",
            facts->problem->coll == HOOP_BROADCAST ? "the root puts the vector" : "each puts its part");
    if (measured == NULL || measured->calls == 0)
        return;
    say(text, "          ");
    say_us(text, (double)measured->least_ns);
    say(text, " us at best, ");
    say_us(text, (double)measured->mean_ns);
    say(text, " us on average over %" PRIu64 " such calls on this rank\n", measured->calls);
}

static void text_tuned(const struct facts *facts, struct text *text)
{
    for (int i = 0; facts->experience && i < facts->experience->kinds; i++) {
        const struct hoop_tuned *tuned = &facts->experience->tuned[i];
        say(text, "effort     %s %s: ", tuned->kind, tuned->in_place ? "in place" : "out of place");
        if (tuned->algo == NULL) {
            say(text, "being tried, %d of %d calls\n", tuned->trials, tuned->wanted);
            continue;
        }
        say(text, "%s, %s", tuned->algo->name, tuned->here ? "measured here," : "from HOOP_WISDOM\n");
        if (tuned->here) {
            say_us(text, (double)tuned->ns);
            say(text, " us\n");
        }
    }
}

static void text_model(const struct facts *facts, struct text *text)
{
    const struct hoop_model *model = &facts->choice->model;

    say(text, "constants  %s:",
        model->measured  ? "from HOOP_MODEL"
        : model->derived ? "from the rings of the topology"
                         : "built in");
#define CONSTANT(name, unit, standard, least, most, help)                                  \
    say(text, " %s %" PRIu64 ".%03" PRIu64 " %s", #name, whole(model->name * 1000) / 1000, \
        whole(model->name * 1000) % 1000, unit);
#include "plan/model.def"
#undef CONSTANT
    say(text, "\n");
}

static void text_device(const struct facts *facts, struct text *text)
{
    const struct hoop_device_way *device = facts->experience ? &facts->experience->device : NULL;

    if (device == NULL)
        return;
    if (device->way)
        say(text, "device     %d, %s; calls on its memory: %s: %s; %" PRIu64 " frames lent to peers so far\n",
            device->ordinal, device->name, device->way, device->why, device->lent);
    else
        say(text, "device     none: %s\n", device->why);
}

static void write_text(const struct facts *facts, struct text *text)
{
    char why[256], name[HOOP_ALGO_TEXT];

    reason(facts, why);
    say(text, "%s of %zu bytes, %d rank%s on %d core%s", hoop_coll_name(facts->problem->coll), facts->bytes,
        facts->problem->ranks, alone(facts) ? "" : "s", facts->choice->cores, facts->choice->cores == 1 ? "" : "s");
    if (facts->choice->groups)
        say(text, ", in %d groups: %s", facts->choice->groups->groups, groups_text(facts, name));
    say(text, "\n");
    text_candidates(facts, text);
    say(text, "choice     %s: %s\n", alone(facts) ? "alone" : chosen(facts, name), why);
    if (!alone(facts) && facts->problem->coll != HOOP_BARRIER) {
        say(text, "range      the same from %zu bytes ", facts->first);
        if (facts->last == SIZE_MAX)
            say(text, "on\n");
        else
            say(text, "to %zu bytes\n", facts->last);
    }
    each_change(facts, text, text_change);
    text_tuned(facts, text);
    text_measured(facts, text);
    text_direct(facts, text);
    text_device(facts, text);
    text_model(facts, text);
}

/* ---- JSON: all words come from our own lists and need no quoting ---- */

static void json_candidates(const struct facts *facts, struct text *text)
{
    say(text, "\"candidates\":[");
    for (int i = 0; i < facts->candidates; i++) {
        const struct candidate *candidate = &facts->candidate[i];
        const struct hoop_prediction *p = &candidate->predicted;
        say(text, "%s{\"algorithm\":\"%s\",\"fit\":%s,", i > 0 ? "," : "", candidate->name,
            candidate->fit ? "true" : "false");
        if (candidate->fit)
            say(text,
                "\"predicted_ns\":%" PRIu64 ",\"hops_ns\":%" PRIu64 ",\"messages_ns\":%" PRIu64 ",\"copy_ns\":%" PRIu64
                ",\"across_ns\":%" PRIu64 ",\"reduce_ns\":%" PRIu64 "}",
                whole(p->time), whole(p->hops), whole(p->messages), whole(p->copy), whole(p->across), whole(p->reduce));
        else
            say(text, "\"why\":\"%s\"}", candidate->why);
    }
    say(text, "],");
}

static void json_change(struct text *text, const char *setting, const char *gives)
{
    say(text, "%s{\"setting\":\"%s\",\"gives\":\"%s\"}",
        text->used > text->size || text->to[text->used - 1] == '[' ? "" : ",", setting, gives);
}

static void json_tuned(const struct facts *facts, struct text *text)
{
    say(text, "\"tuned\":[");
    for (int i = 0; facts->experience && i < facts->experience->kinds; i++) {
        const struct hoop_tuned *tuned = &facts->experience->tuned[i];
        say(text, "%s{\"class\":\"%s\",\"in_place\":%s,", i > 0 ? "," : "", tuned->kind,
            tuned->in_place ? "true" : "false");
        if (tuned->algo)
            say(text, "\"choice\":\"%s\",\"from\":\"%s\",\"ns\":%" PRIu64 "}", tuned->algo->name,
                tuned->here ? "measured" : "wisdom", tuned->ns);
        else
            say(text, "\"trials\":%d,\"wanted\":%d}", tuned->trials, tuned->wanted);
    }
    say(text, "],");
}

static void json_model(const struct facts *facts, struct text *text)
{
    const struct hoop_model *model = &facts->choice->model;

    say(text, "\"model\":{\"measured\":%s", model->measured ? "true" : "false");
#define CONSTANT(name, unit, standard, least, most, help)                                \
    say(text, ",\"%s\":%" PRIu64 ".%03" PRIu64, #name, whole(model->name * 1000) / 1000, \
        whole(model->name * 1000) % 1000);
#include "plan/model.def"
#undef CONSTANT
    say(text, "}}\n");
}

static void json_device(const struct facts *facts, struct text *text)
{
    const struct hoop_device_way *device = facts->experience ? &facts->experience->device : NULL;

    if (device == NULL)
        return;
    say(text, "\"device\":{\"ordinal\":%d,\"way\":\"%s\",\"because\":\"%s\",\"lent\":%" PRIu64 "},", device->ordinal,
        device->way ? device->way : "none", device->why, device->lent);
}

static void json_measured(const struct hoop_measured *measured, struct text *text)
{
    if (measured == NULL || measured->calls == 0)
        say(text, "null,");
    else
        say(text, "{\"calls\":%" PRIu64 ",\"least_ns\":%" PRIu64 ",\"mean_ns\":%" PRIu64 "},", measured->calls,
            measured->least_ns, measured->mean_ns);
}

static void write_json(const struct facts *facts, struct text *text)
{
    char why[256], name[HOOP_ALGO_TEXT];

    reason(facts, why);
    say(text, "{\"collective\":\"%s\",\"bytes\":%zu,\"ranks\":%d,\"cores\":%d,", hoop_coll_name(facts->problem->coll),
        facts->bytes, facts->problem->ranks, facts->choice->cores);
    say(text, "\"groups\":\"%s\",", groups_text(facts, name));
    json_candidates(facts, text);
    say(text, "\"choice\":\"%s\",\"because\":\"%s\",\"first_bytes\":%zu,", alone(facts) ? "alone" : chosen(facts, name),
        why, facts->first);
    if (facts->last == SIZE_MAX)
        say(text, "\"last_bytes\":null,");
    else
        say(text, "\"last_bytes\":%zu,", facts->last);
    say(text, "\"changes\":[");
    each_change(facts, text, json_change);
    say(text, "],\"measured\":");
    json_measured(facts->experience ? &facts->experience->plans : NULL, text);
    say(text, "\"direct\":%s,\"staged\":%s,\"direct_measured\":", direct(facts) ? "true" : "false",
        staged(facts) ? "true" : "false");
    json_measured(facts->experience ? &facts->experience->direct : NULL, text);
    json_tuned(facts, text);
    json_device(facts, text);
    json_model(facts, text);
}

/* ---- entry points ---- */

enum hoop_status hoop_explain_write(const struct hoop_choice *choice, const struct hoop_problem *problem, size_t bytes,
                                    const struct hoop_experience *experience, bool json, char *text, size_t size)
{
    struct facts facts = {.choice = choice,
                          .problem = problem,
                          .experience = experience,
                          .bytes = problem->coll == HOOP_BARRIER ? 0 : bytes};
    struct text out = {text, size, 0};

    if ((unsigned)problem->coll >= HOOP_COLLS || problem->ranks < 1 || problem->channels < 1)
        return hoop_fail(HOOP_ERR_ARG, "collective %d of %d ranks in %d channels is no problem that has a plan",
                         (int)problem->coll, problem->ranks, problem->channels);
    if (text == NULL || size < HOOP_EXPLAIN_TEXT)
        return hoop_fail(HOOP_ERR_ARG, "an explanation needs room for HOOP_EXPLAIN_TEXT = %d bytes; %zu were given",
                         HOOP_EXPLAIN_TEXT, text ? size : 0);
    gather(&facts);
    (json ? write_json : write_text)(&facts, &out);
    return out.used < size ? HOOP_OK
                           : hoop_fail(HOOP_ERR_INTERNAL, "an explanation of %zu bytes does not fit", out.used);
}

enum hoop_status hoop_plan_explain(const struct hoop_choice *choice, const struct hoop_problem *problem, size_t bytes,
                                   bool json, char *text, size_t size)
{
    return hoop_explain_write(choice, problem, bytes, NULL, json, text, size);
}
