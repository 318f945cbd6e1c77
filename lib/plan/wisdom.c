// SPDX-License-Identifier: BSD-3-Clause
#include "plan/wisdom.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "plan/lines.h"

static const char *const classes[HOOP_WISDOM_CLASSES] = {"data", "exact", "real", "narrow"};
static const char *const places[] = {"out_of_place", "in_place"};

const char *hoop_wisdom_class_name(enum hoop_wisdom_class kind)
{
    return classes[kind];
}

int hoop_wisdom_size(size_t bytes)
{
    int size = 0;

    while (size < HOOP_WISDOM_SIZES - 1 && bytes >> (size + 1) != 0)
        size++;
    return size;
}

static bool about_the_same(const struct hoop_wisdom_line *a, const struct hoop_wisdom_line *b)
{
    return a->coll == b->coll && a->kind == b->kind && a->in_place == b->in_place && a->size == b->size &&
           a->ranks == b->ranks && a->cores == b->cores && a->channels == b->channels && a->slice == b->slice &&
           strcmp(a->groups, b->groups) == 0;
}

enum hoop_status hoop_wisdom_put(struct hoop_wisdom *wisdom, const struct hoop_wisdom_line *line)
{
    for (size_t i = 0; i < wisdom->lines; i++)
        if (about_the_same(&wisdom->line[i], line)) {
            wisdom->line[i] = *line;
            return HOOP_OK;
        }
    if (wisdom->lines == HOOP_WISDOM_LINES)
        return hoop_fail(HOOP_ERR_ARG, "more than %d lines of wisdom", HOOP_WISDOM_LINES);
    if (wisdom->lines == wisdom->room) {
        const size_t room = wisdom->room ? 2 * wisdom->room : 32;
        struct hoop_wisdom_line *larger = hoop_realloc(wisdom->line, room, sizeof *larger);
        if (larger == NULL)
            return HOOP_ERR_MEMORY;
        wisdom->line = larger;
        wisdom->room = room;
    }
    wisdom->line[wisdom->lines++] = *line;
    return HOOP_OK;
}

void hoop_wisdom_free(struct hoop_wisdom *wisdom)
{
    hoop_free(wisdom->line);
    *wisdom = (struct hoop_wisdom){NULL, 0, 0};
}

/* ---- text ---- */

/* Which of the names the word is; -1: none. */
static int find(struct hoop_word word, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (hoop_word_is(word, names[i]))
            return i;
    return -1;
}

static int find_coll(struct hoop_word word)
{
    char name[33];
    const int coll = word.length < sizeof name ? hoop_coll_find(hoop_word_shown(word, name)) : -1;

    return coll == HOOP_BARRIER ? -1 : coll;
}

static const struct hoop_algo *find_algo(struct hoop_word word)
{
    char name[33];

    return word.length < sizeof name ? hoop_algo_find(hoop_word_shown(word, name)) : NULL;
}

/* Groups in words, as far as they can be such; whose they are is seen where they are compared. */
static bool read_groups(struct hoop_word word, char groups[HOOP_GROUPS_TEXT])
{
    if (word.length == 0 || word.length >= HOOP_GROUPS_TEXT || memchr(word.text, 0, word.length))
        return false;
    memcpy(groups, word.text, word.length);
    groups[word.length] = 0;
    if (groups[0] == '~')
        return strspn(groups + 1, "0123456789abcdef") + 1 == word.length;
    return strcmp(groups, "none") == 0 || (groups[0] != ',' && strspn(groups, "0123456789,") == word.length);
}

static enum hoop_status wrong(int number, struct hoop_word word, const char *what)
{
    char text[33];

    return word.length == 0
               ? hoop_fail(HOOP_ERR_ARG, "line %d: %s is missing", number, what)
               : hoop_fail(HOOP_ERR_ARG, "line %d: %s is no %s", number, hoop_word_shown(word, text), what);
}

/* The numbers of a line, which all are 1 or more. */
static enum hoop_status read_numbers(struct hoop_word *rest, int number, struct hoop_wisdom_line *line)
{
    static const struct {
        const char *what;
        uint64_t most;
    } fields[] = {{"number of bytes that is a power of two", (uint64_t)1 << (HOOP_WISDOM_SIZES - 1)},
                  {"number of ranks", 1048576},
                  {"number of cores", 1048576},
                  {"size of a slice", 16777216},
                  {"number of channels", HOOP_MAX_CHANNELS}};
    uint64_t value[5];

    for (int i = 0; i < 5; i++) {
        const struct hoop_word word = hoop_word_next(rest);
        if (!hoop_word_whole(word, fields[i].most, &value[i]) || value[i] == 0 ||
            (i == 0 && (value[i] & (value[i] - 1)) != 0))
            return wrong(number, word, fields[i].what);
    }
    line->size = hoop_wisdom_size((size_t)value[0]);
    line->ranks = (int)value[1];
    line->cores = (int)value[2];
    line->slice = (size_t)value[3];
    line->channels = (int)value[4];
    return HOOP_OK;
}

/* One line; *empty: it says nothing. */
static enum hoop_status read_line(struct hoop_word rest, int number, struct hoop_wisdom_line *line, bool *empty)
{
    struct hoop_word word = hoop_word_next(&rest);
    int found = -1;

    *empty = word.length == 0;
    if (*empty)
        return HOOP_OK;
    if ((found = find_coll(word)) < 0)
        return wrong(number, word, "collective");
    line->coll = (enum hoop_coll)found;
    word = hoop_word_next(&rest);
    if ((found = find(word, classes, HOOP_WISDOM_CLASSES)) < 0)
        return wrong(number, word, "class: data, exact, real or narrow");
    line->kind = (enum hoop_wisdom_class)found;
    word = hoop_word_next(&rest);
    if ((found = find(word, places, 2)) < 0)
        return wrong(number, word, "place: out_of_place or in_place");
    line->in_place = found != 0;
    const enum hoop_status status = read_numbers(&rest, number, line);
    if (status != HOOP_OK)
        return status;
    word = hoop_word_next(&rest);
    if (!read_groups(word, line->groups))
        return wrong(number, word, "groups: none, sizes with commas, or ~ and a hash");
    word = hoop_word_next(&rest);
    if ((line->algo = find_algo(word)) == NULL)
        return wrong(number, word, "algorithm");
    word = hoop_word_next(&rest);
    if (!hoop_word_whole(word, (uint64_t)1 << 62, &line->ns))
        return wrong(number, word, "number of nanoseconds");
    word = hoop_word_next(&rest);
    return word.length > 0 ? wrong(number, word, "part of a line") : HOOP_OK;
}

enum hoop_status hoop_wisdom_parse(struct hoop_wisdom *wisdom, const char *text, size_t size)
{
    struct hoop_lines lines = {text, text + size, 0};
    struct hoop_word rest;

    if (size > HOOP_WISDOM_FILE)
        return hoop_fail(HOOP_ERR_ARG, "%zu bytes are too many for wisdom; %d are allowed", size, HOOP_WISDOM_FILE);
    if (size == 0 || !hoop_line_next(&lines, &rest))
        return hoop_fail(HOOP_ERR_ARG, "there is no wisdom in it; it begins with \"hoop-wisdom %d\"",
                         HOOP_WISDOM_VERSION);
    const struct hoop_word format = hoop_word_next(&rest), version = hoop_word_next(&rest),
                           more = hoop_word_next(&rest);
    if (!hoop_word_is(format, "hoop-wisdom") || !hoop_word_is(version, "2") || more.length > 0)
        return hoop_fail(
            HOOP_ERR_ARG,
            "line 1: wisdom begins with \"hoop-wisdom %d\"; what does not is of another version, or something else",
            HOOP_WISDOM_VERSION);
    while (hoop_line_next(&lines, &rest)) {
        struct hoop_wisdom_line line;
        bool empty;
        enum hoop_status status = read_line(rest, lines.line, &line, &empty);
        if (status == HOOP_OK && !empty)
            status = hoop_wisdom_put(wisdom, &line);
        if (status != HOOP_OK)
            return status;
    }
    return HOOP_OK;
}

enum hoop_status hoop_wisdom_print(const struct hoop_wisdom *wisdom, FILE *file)
{
    int written =
        fprintf(file, "hoop-wisdom %d\n# collective class place bytes ranks cores slice channels groups algorithm ns\n",
                HOOP_WISDOM_VERSION);

    for (size_t i = 0; i < wisdom->lines && written >= 0; i++) {
        const struct hoop_wisdom_line *line = &wisdom->line[i];
        written = fprintf(file, "%s %s %s %" PRIu64 " %d %d %zu %d %s %s %" PRIu64 "\n", hoop_coll_name(line->coll),
                          classes[line->kind], places[line->in_place], (uint64_t)1 << line->size, line->ranks,
                          line->cores, line->slice, line->channels, line->groups, line->algo->name, line->ns);
    }
    return written < 0 || fflush(file) != 0 ? hoop_fail_errno(HOOP_ERR_SYSTEM, "the wisdom cannot be written")
                                            : HOOP_OK;
}

/* ---- files ---- */

enum hoop_status hoop_wisdom_load(struct hoop_wisdom *wisdom, const char *path, bool *missing)
{
    char *text, why[256];
    size_t size;

    enum hoop_status status = hoop_file_read("wisdom file", path, HOOP_WISDOM_FILE, &text, &size, missing);
    if (status == HOOP_OK && text) {
        status = hoop_wisdom_parse(wisdom, text, size);
        if (status == HOOP_ERR_ARG) {
            snprintf(why, sizeof why, "%s", hoop_error_text());
            status = hoop_fail(HOOP_ERR_SETUP, "wisdom file %s: %s", path, why);
        }
    }
    hoop_free(text);
    return status;
}

enum hoop_status hoop_wisdom_save(const struct hoop_wisdom *wisdom, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL)
        return hoop_fail_errno(HOOP_ERR_MEMORY, "no memory for the text of the wisdom");
    enum hoop_status status = hoop_wisdom_print(wisdom, file);
    if (fclose(file) != 0 && status == HOOP_OK)
        status = hoop_fail_errno(HOOP_ERR_MEMORY, "no memory for the text of the wisdom");
    if (status == HOOP_OK)
        status = hoop_file_replace("wisdom file", path, text, size);
    free(text); /* the C library's */
    return status;
}
