// SPDX-License-Identifier: BSD-3-Clause
/* Wisdom: which algorithm was the fastest when several were tried, as text that is kept between runs.
 *
 *     hoop-wisdom 2
 *     # collective class place bytes ranks cores slice channels groups algorithm ns
 *     all_reduce real out_of_place 1048576 4 2 131072 1 none twoshot 207400
 *
 * A line is about calls of one collective, class and place whose whole vector has at least the bytes (a power of two) and less than
 * twice as many, among so many ranks on so many cores with these settings and groups (hoop_groups_text). ns is what the fastest took. Of equal lines the later one
 * counts.
 */
#ifndef HOOP_PLAN_WISDOM_H
#define HOOP_PLAN_WISDOM_H

#include <stdint.h>
#include <stdio.h>

#include "hoop/plan.h"

/* What is moved or combined, as far as it matters for speed and for the order of combining. */
enum hoop_wisdom_class {
    HOOP_WISDOM_DATA,   /* nothing is combined */
    HOOP_WISDOM_EXACT,  /* the order of combining does not show: integers, minimum, maximum, bits */
    HOOP_WISDOM_REAL,   /* it shows */
    HOOP_WISDOM_NARROW, /* it shows, and the elements travel as f32 */
    HOOP_WISDOM_CLASSES
};

enum {
    HOOP_WISDOM_VERSION = 2,
    HOOP_WISDOM_FILE = 1 << 20, /* most bytes of a file */
    HOOP_WISDOM_LINES = 16384,  /* most lines of it that say something */
    HOOP_WISDOM_SIZES = 48      /* powers of two, from 1 byte; the last one stands for all above */
};

struct hoop_wisdom_line {
    enum hoop_coll coll;
    enum hoop_wisdom_class kind;
    bool in_place;
    int size; /* the vector has 2^size bytes or more */
    int ranks, cores, channels;
    size_t slice;
    char groups[HOOP_GROUPS_TEXT];
    const struct hoop_algo *algo;
    uint64_t ns;
};

/* A list of lines. Zeroed it is empty. Owned; freed by hoop_wisdom_free. */
struct hoop_wisdom {
    struct hoop_wisdom_line *line;
    size_t lines, room;
};

/* "data", "exact", "real", "narrow". */
const char *hoop_wisdom_class_name(enum hoop_wisdom_class kind);

/* The size of a vector: floor(log2(bytes)), at most HOOP_WISDOM_SIZES - 1. */
int hoop_wisdom_size(size_t bytes);

/* Add a line, or put it in the place of one about the same calls. Errors: HOOP_ERR_MEMORY, HOOP_ERR_ARG (HOOP_WISDOM_LINES are there). */
enum hoop_status hoop_wisdom_put(struct hoop_wisdom *wisdom, const struct hoop_wisdom_line *line);

/* Read a text; any is safe to give. Adds to what is there. Errors: HOOP_ERR_ARG (names line and word), HOOP_ERR_MEMORY. */
enum hoop_status hoop_wisdom_parse(struct hoop_wisdom *wisdom, const char *text, size_t size);

/* Write the text. Errors: HOOP_ERR_SYSTEM. */
enum hoop_status hoop_wisdom_print(const struct hoop_wisdom *wisdom, FILE *file);

/* Read a file into an empty list; missing: NULL, or receives whether there is none, which is no error then.
 * Errors: HOOP_ERR_SETUP (names file, line and word), HOOP_ERR_MEMORY. */
enum hoop_status hoop_wisdom_load(struct hoop_wisdom *wisdom, const char *path, bool *missing);

/* Replace a file in one step. Errors: HOOP_ERR_SYSTEM, HOOP_ERR_MEMORY. */
enum hoop_status hoop_wisdom_save(const struct hoop_wisdom *wisdom, const char *path);

void hoop_wisdom_free(struct hoop_wisdom *wisdom);

#endif
