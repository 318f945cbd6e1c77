// SPDX-License-Identifier: BSD-3-Clause
/* hoop-plan draw: a collective as an SVG picture.
 *
 * A column a rank, time downwards, an arrow a message. A row is the time of one message: a rank sends and receives
 * one at a time, and a message leaves when what its lane received before is there. Colours tell chunks apart; on a
 * grid of one chunk lanes or senders. A full head adds what it brings, an open one stores it. A message of several chunks
 * is one arrow, named by its first.
 */
#include <errno.h>
#include <hoop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_tool.h"

enum { DRAW_RANKS_MOST = 64, MARGIN = 64, HEAD = 92, ROW = 40, COLOURS = 8, WIDTH_LEAST = 400 };

static const char *const colours[COLOURS] = {"#1f6fb4", "#d1495b", "#2e8b57", "#b8690f",
                                             "#7b4fa3", "#00838f", "#8a6d3b", "#5c6b7a"};

struct arrow {
    int source, destination, lane, leaves, arrives;
    int joined; /* further chunks */
    bool reduces;
    unsigned buffer;
    uint32_t chunk;
};

/* A lane of a rank on its way through its program. */
struct walker {
    int rank, lane, now; /* time when the next step may begin */
    uint32_t next;
};

struct picture {
    struct hoop_plan **plan;
    int ranks, rows, column;
    struct walker *walker;
    int walkers;
    struct arrow *arrow; /* in order of sending */
    bool *received;      /* one an arrow */
    int arrows;
    int *sends_until, *receives_until; /* one a rank: its ends are busy until then */
};

/* ---- when what happens ---- */

static const struct hoop_step *next_step(const struct picture *picture, const struct walker *walker)
{
    const struct hoop_lane_plan *lane = &picture->plan[walker->rank]->lane[walker->lane];

    return walker->next < lane->steps ? &lane->step[walker->next] : NULL;
}

static bool joined(const struct hoop_step *step)
{
    return (step->flags & HOOP_STEP_JOINED) != 0;
}

/* The latest message that the walker sent to the peer takes one more chunk. */
static void join_arrow(struct picture *picture, const struct walker *walker, int peer)
{
    for (int i = picture->arrows; i-- > 0;) {
        struct arrow *arrow = &picture->arrow[i];

        if (arrow->source == walker->rank && arrow->destination == peer && arrow->lane == walker->lane) {
            arrow->joined++;
            return;
        }
    }
}

/* The oldest message that the step would receive, or -1. */
static int find_arrow(const struct picture *picture, const struct walker *walker, const struct hoop_step *step)
{
    for (int i = 0; i < picture->arrows; i++) {
        const struct arrow *arrow = &picture->arrow[i];

        if (!picture->received[i] && arrow->source == step->peer && arrow->destination == walker->rank &&
            arrow->lane == walker->lane)
            return i;
    }
    return -1;
}

static int later(int a, int b)
{
    return a > b ? a : b;
}

/* When could the walker's next step begin? -1: not yet. */
static int when(const struct picture *picture, const struct walker *walker)
{
    const struct hoop_step *step = next_step(picture, walker);

    if (step == NULL)
        return -1;
    if (joined(step))
        return walker->now;
    if (step->kind == HOOP_STEP_SEND)
        return later(walker->now, picture->sends_until[walker->rank]);
    if (step->kind == HOOP_STEP_RECV || step->kind == HOOP_STEP_RECV_REDUCE) {
        const int arrow = find_arrow(picture, walker, step);
        const int free = later(walker->now - 1, picture->receives_until[walker->rank]);

        return arrow < 0 ? -1 : later(free, picture->arrow[arrow].leaves);
    }
    if (step->kind == HOOP_STEP_AFTER) {
        const struct walker *other = walker - walker->lane + step->peer;

        return other->next > step->to ? later(walker->now, other->now) : -1;
    }
    return walker->now;
}

static void take_step(struct picture *picture, struct walker *walker, int begin)
{
    const struct hoop_step *step = next_step(picture, walker);

    if (joined(step)) {
        if (step->kind == HOOP_STEP_SEND)
            join_arrow(picture, walker, step->peer);
    } else if (step->kind == HOOP_STEP_SEND) {
        picture->arrow[picture->arrows++] = (struct arrow){.source = walker->rank,
                                                           .destination = step->peer,
                                                           .lane = walker->lane,
                                                           .leaves = begin,
                                                           .arrives = begin + 1,
                                                           .buffer = step->from_buffer,
                                                           .chunk = step->from};
        picture->sends_until[walker->rank] = begin + 1;
    } else if (step->kind == HOOP_STEP_RECV || step->kind == HOOP_STEP_RECV_REDUCE) {
        const int i = find_arrow(picture, walker, step);

        picture->received[i] = true;
        picture->arrow[i].arrives = walker->now = begin + 1;
        picture->arrow[i].reduces = step->kind == HOOP_STEP_RECV_REDUCE;
        if (step->to_buffer != HOOP_TMP) /* where it lands says more than a TMP chunk it may come from */
            picture->arrow[i].chunk = step->to;
        else if (step->kind == HOOP_STEP_RECV_REDUCE)
            picture->arrow[i].chunk = step->from;
        picture->receives_until[walker->rank] = begin + 1;
        picture->rows = later(picture->rows, begin + 1);
    } else if (step->kind == HOOP_STEP_AFTER) {
        walker->now = begin;
    }
    walker->next++;
}

/* Take the step that can begin first, until there is none. */
static void walk(struct picture *picture)
{
    for (;;) {
        struct walker *first = NULL;
        int begin = -1;

        for (int i = 0; i < picture->walkers; i++) {
            const int at = when(picture, &picture->walker[i]);

            if (at >= 0 && (first == NULL || at < begin)) {
                first = &picture->walker[i];
                begin = at;
            }
        }
        if (first == NULL)
            return;
        take_step(picture, first, begin);
    }
}

static bool open_picture(struct picture *picture)
{
    size_t sends = 0, lanes = 0;

    for (int rank = 0; rank < picture->ranks; rank++)
        for (uint32_t lane = 0; lane < picture->plan[rank]->lanes; lane++, lanes++)
            sends += picture->plan[rank]->lane[lane].steps;
    picture->walker = calloc(lanes + 1, sizeof *picture->walker);
    picture->arrow = calloc(sends + 1, sizeof *picture->arrow);
    picture->received = calloc(sends + 1, sizeof *picture->received);
    picture->sends_until = calloc((size_t)picture->ranks, sizeof *picture->sends_until);
    picture->receives_until = calloc((size_t)picture->ranks, sizeof *picture->receives_until);
    if (picture->walker == NULL || picture->arrow == NULL || picture->received == NULL ||
        picture->sends_until == NULL || picture->receives_until == NULL)
        return false;
    for (int rank = 0; rank < picture->ranks; rank++)
        for (uint32_t lane = 0; lane < picture->plan[rank]->lanes; lane++)
            picture->walker[picture->walkers++] = (struct walker){.rank = rank, .lane = (int)lane};
    return true;
}

static void close_picture(struct picture *picture)
{
    free(picture->walker);
    free(picture->arrow);
    free(picture->received);
    free(picture->sends_until);
    free(picture->receives_until);
}

/* ---- the picture ---- */

static int x_of(const struct picture *picture, int rank)
{
    return MARGIN + picture->column / 2 + rank * picture->column;
}

static int y_of(int time)
{
    return HEAD + time * ROW;
}

static void draw_frame(const struct picture *picture, FILE *file)
{
    const int bottom = y_of(picture->rows);

    for (int row = 0; row <= picture->rows; row++) {
        fprintf(file, "<line class=\"grid\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", MARGIN - 12, y_of(row),
                MARGIN + picture->ranks * picture->column, y_of(row));
        fprintf(file, "<text class=\"time\" x=\"%d\" y=\"%d\">%d</text>\n", MARGIN - 18, y_of(row) + 4, row);
    }
    for (int rank = 0; rank < picture->ranks; rank++) {
        const int x = x_of(picture, rank);

        fprintf(file, "<line class=\"rank\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", x, HEAD - 10, x, bottom + 10);
        fprintf(file, "<text class=\"name\" x=\"%d\" y=\"%d\">%d</text>\n", x, HEAD - 16, rank);
        fprintf(file, "<text class=\"name\" x=\"%d\" y=\"%d\">%d</text>\n", x, bottom + 26, rank);
    }
}

/* Chunks, lanes or senders in different colours: whatever tells the arrows apart best. */
static unsigned colour_of(const struct picture *picture, const struct arrow *arrow)
{
    if (picture->plan[0]->grid > 1)
        return arrow->chunk % COLOURS;
    return (unsigned)(picture->plan[0]->lanes > 1 ? arrow->lane : arrow->source) % COLOURS;
}

static void draw_arrow(const struct picture *picture, const struct arrow *arrow, FILE *file)
{
    const unsigned colour = colour_of(picture, arrow);
    const int x1 = x_of(picture, arrow->source), x2 = x_of(picture, arrow->destination);

    fprintf(file,
            "<line class=\"arrow\" stroke=\"%s\" marker-end=\"url(#%s%u)\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\">"
            "<title>rank %d to rank %d, lane %d: %s %u and %d more, %s</title></line>\n",
            colours[colour], arrow->reduces ? "add" : "put", colour, x1, y_of(arrow->leaves), x2 > x1 ? x2 - 2 : x2 + 2,
            y_of(arrow->arrives), arrow->source, arrow->destination, arrow->lane,
            arrow->buffer == HOOP_TMP ? "sum of chunk" : "chunk", arrow->chunk, arrow->joined,
            arrow->reduces ? "added" : "stored");
}

/* The label stands near the sender, where arrows seldom meet. */
static void draw_label(const struct picture *picture, const struct arrow *arrow, FILE *file)
{
    const int x1 = x_of(picture, arrow->source), x2 = x_of(picture, arrow->destination);
    const int y1 = y_of(arrow->leaves), y2 = y_of(arrow->arrives);
    const double along = 26.0 / abs(x2 - x1);

    fprintf(file, "<text class=\"chunk\" fill=\"%s\" x=\"%.1f\" y=\"%.1f\">%u", colours[colour_of(picture, arrow)],
            x1 + along * (x2 - x1), y1 + along * (y2 - y1) + 3.5, arrow->chunk);
    if (arrow->joined > 0)
        fprintf(file, "+%d", arrow->joined);
    fprintf(file, "</text>\n");
}

static void draw_markers(FILE *file)
{
    for (int i = 0; i < COLOURS; i++)
        fprintf(file,
                "<marker id=\"add%d\" class=\"tip\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" "
                "markerHeight=\"8\" orient=\"auto\"><path d=\"M0,0 L10,5 L0,10 z\" fill=\"%s\"/></marker>\n"
                "<marker id=\"put%d\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" "
                "markerHeight=\"8\" orient=\"auto\"><path d=\"M1,1 L9,5 L1,9\" fill=\"none\" stroke=\"%s\" "
                "stroke-width=\"1.6\"/></marker>\n",
                i, colours[i], i, colours[i]);
}

static void draw_head(const struct picture *picture, FILE *file)
{
    const struct hoop_plan *plan = picture->plan[0];
    const int width = later(WIDTH_LEAST, 2 * MARGIN + picture->ranks * picture->column);
    char root[32] = "";

    if (is_rooted(plan->problem.coll))
        snprintf(root, sizeof root, ", root %d", plan->problem.root);
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"DejaVu Sans, Helvetica, sans-serif\">\n<style>\n"
            ".grid { stroke: #e6e9ed; stroke-width: 1 }\n.rank { stroke: #9aa4af; stroke-width: 1.5 }\n"
            ".time { font-size: 10px; fill: #8a949e; text-anchor: end }\n"
            ".name { font-size: 13px; font-weight: bold; fill: #2b3138; text-anchor: middle }\n"
            ".arrow { stroke-width: 1.5 }\n"
            ".chunk { font-size: 10px; text-anchor: middle; stroke: white; stroke-width: 3px; paint-order: stroke }\n"
            ".title { font-size: 16px; font-weight: bold; fill: #2b3138 }\n"
            ".note { font-size: 11px; fill: #5a646e }\n</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<defs>\n",
            width, y_of(picture->rows) + 44, width, y_of(picture->rows) + 44);
    draw_markers(file);
    fprintf(file, "</defs>\n<text class=\"title\" x=\"16\" y=\"26\">%s %s, %d ranks%s</text>\n", plan->algo->name,
            hoop_coll_name(plan->problem.coll), picture->ranks, root);
    fprintf(file, "<text class=\"note\" x=\"16\" y=\"44\">%d message%s in %d row%s; ", picture->arrows,
            picture->arrows == 1 ? "" : "s", picture->rows, picture->rows == 1 ? "" : "s");
    if (plan->grid > 1)
        fprintf(file, "labels: chunks 0 to %u, +: and so many more.", plan->grid - 1);
    else
        fprintf(file, "one chunk; colours: %s.", plan->lanes > 1 ? "lane" : "sender");
    fprintf(file, "</text>\n<text class=\"note\" x=\"16\" y=\"59\">Full head: added. Open head: stored.</text>\n");
}

static bool write_picture(const struct picture *picture, const char *path)
{
    FILE *file = path == NULL ? stdout : fopen(path, "w");

    if (file == NULL) {
        fprintf(stderr, "hoop-plan: %s: %s\n", path, strerror(errno));
        return false;
    }
    draw_head(picture, file);
    draw_frame(picture, file);
    for (int i = 0; i < picture->arrows; i++)
        draw_arrow(picture, &picture->arrow[i], file);
    for (int i = 0; i < picture->arrows; i++) /* over all arrows */
        draw_label(picture, &picture->arrow[i], file);
    fprintf(file, "</svg>\n");
    const bool written = fflush(file) == 0 && ferror(file) == 0;
    if (file != stdout)
        fclose(file);
    if (!written)
        fprintf(stderr, "hoop-plan: the picture cannot be written\n");
    return written;
}

int draw_plans(const struct plan_options *options)
{
    struct hoop_plan *plan[DRAW_RANKS_MOST];
    struct picture picture = {.plan = plan,
                              .ranks = options->ranks,
                              .column = options->ranks <= 8    ? 96
                                        : options->ranks <= 16 ? 76
                                                               : 56};
    struct hoop_problem problem;
    bool good;

    if (options->ranks > DRAW_RANKS_MOST) {
        fprintf(stderr, "hoop-plan: %d ranks are too many to draw; up to %d are drawn\n", options->ranks,
                DRAW_RANKS_MOST);
        return 1;
    }
    if (!read_problem(options, options->ranks, &problem) || !build_plans(plan, options->algo, problem, true))
        return 1;
    good = open_picture(&picture);
    if (good)
        walk(&picture);
    else
        fprintf(stderr, "hoop-plan: no memory for the picture\n");
    good = good && write_picture(&picture, options->output);
    close_picture(&picture);
    free_plans(plan, options->ranks);
    return good ? 0 : 1;
}
