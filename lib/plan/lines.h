// SPDX-License-Identifier: BSD-3-Clause
/* Small text files line by line and word by word: models and wisdom. What follows a '#' is a remark. Any bytes are safe. */
#ifndef HOOP_PLAN_LINES_H
#define HOOP_PLAN_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hoop_lines {
    const char *at, *end;
    int line; /* number of the latest one, from 1 */
};

struct hoop_word {
    const char *text; /* not NUL-terminated */
    size_t length;    /* 0: there is none */
};

/* The next line, without its remark; false: no more. */
bool hoop_line_next(struct hoop_lines *lines, struct hoop_word *line);

/* Cut the line's next word off. */
struct hoop_word hoop_word_next(struct hoop_word *line);

bool hoop_word_is(struct hoop_word word, const char *text);

/* What an error text may show of a word: 32 printable characters. Returns text. */
const char *hoop_word_shown(struct hoop_word word, char text[33]);

/* Digits only, a number of at most `most`. */
bool hoop_word_whole(struct hoop_word word, uint64_t most, uint64_t *value);

#endif
