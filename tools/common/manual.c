// SPDX-License-Identifier: BSD-3-Clause
/* Parsing with the added options, and the sections at the end of the help. */
#include "manual.h"

#include <hoop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAN = 0x10000, KEY_COMPLETION };

static const struct hoop_manual *current; /* a process has one */

static error_t parse_hidden(int key, char *argument, struct argp_state *state)
{
    (void)argument;
    (void)state;
    if (key != KEY_MAN && key != KEY_COMPLETION)
        return ARGP_ERR_UNKNOWN;
    if (key == KEY_MAN)
        hoop_manual_write_page(current);
    else
        hoop_manual_write_completion(current);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("standard output");
        exit(EXIT_FAILURE);
    }
    exit(EXIT_SUCCESS);
}

/* Words from column at on, with later lines at the column indent. Returns the column reached. */
static int print_words(FILE *out, const char *text, size_t length, int at, int indent)
{
    enum { WIDTH = 78 };

    for (const char *word = text, *end = text + length; word < end;) {
        const size_t word_length = strcspn(word, " \n");

        if (at > indent && at + 1 + (int)word_length > WIDTH) {
            fputc('\n', out);
            at = 0;
        }
        at += fprintf(out, "%*s%.*s", at < indent ? indent - at : 1, "", (int)word_length, word);
        word += word_length;
        while (word < end && *word == ' ')
            word++;
    }
    return at;
}

/* One section as plain text (see manual.h): paragraphs are filled, items have their meaning in a column of its own. */
static void print_section(FILE *out, const struct hoop_manual_section *section)
{
    enum { INDENT = 2, COLUMN = 13 };
    int at = 0; /* the column in an unfinished line of a paragraph */

    fprintf(out, "\n%s\n", section->title);
    for (const char *line = section->text; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        const char *tab = memchr(line, '\t', length);

        if (tab == NULL && length > 0 && *line != ' ') {
            at = print_words(out, line, length, at, INDENT);
        } else {
            fputs(at > 0 ? "\n" : "", out);
            at = 0;
            if (tab != NULL) {
                at = fprintf(out, "  %-10.*s", (int)(tab - line), line);
                if (at >= COLUMN) /* a long term has its line to itself */
                    at = fprintf(out, "\n") - 1;
                print_words(out, tab + 1, length - (size_t)(tab + 1 - line), at, COLUMN);
                at = 0;
            } else {
                fprintf(out, "%s%.*s", length > 0 ? "  " : "", (int)length, line);
            }
            fputc('\n', out);
        }
        line += length + (line[length] == '\n');
    }
    fputs(at > 0 ? "\n" : "", out);
}

/* argp asks for text at the end of the help; it frees what it gets. */
static char *help_filter(int key, const char *text, void *input)
{
    char *extra = NULL;
    size_t size;
    FILE *out;

    (void)input;
    if (key != ARGP_KEY_HELP_EXTRA || (out = open_memstream(&extra, &size)) == NULL)
        return (char *)(uintptr_t)text; /* argp compares the address: unchanged means not ours to free */
    for (const struct hoop_manual_section *s = current->sections; s != NULL && s->title != NULL; s++)
        print_section(out, s);
    if (current->settings)
        fprintf(out, "\nENVIRONMENT\n  HOOP_ settings: see %s(1), or hoop-info for the values in force.\n",
                current->name);
    if (fclose(out) != 0) {
        free(extra);
        return NULL;
    }
    return extra;
}

static void print_version(FILE *out, struct argp_state *state)
{
    const int version = hoop_version();

    (void)state;
    fprintf(out, "%s (hoop) %d.%d.%d\n", current->name, version / 10000, version / 100 % 100, version % 100);
}

error_t hoop_manual_parse(const struct hoop_manual *manual, int argc, char **argv, unsigned flags, void *input)
{
    static const struct argp_option hidden[] = {
        {"man", KEY_MAN, NULL, OPTION_HIDDEN, NULL, 0},
        {"completion", KEY_COMPLETION, NULL, OPTION_HIDDEN, NULL, 0},
        {NULL, 0, NULL, 0, NULL, 0},
    };
    static const struct argp hidden_argp = {hidden, parse_hidden, NULL, NULL, NULL, NULL, NULL};
    static const struct argp_child children[] = {{&hidden_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};
    struct argp whole = *manual->argp;
    static char usual_name[64];

    current = manual;
    snprintf(usual_name, sizeof(usual_name), "%s", manual->name);
    if (argc > 0)
        argv[0] = usual_name; /* not the name of a build wrapper */
    whole.children = children;
    whole.help_filter = help_filter;
    argp_program_version_hook = print_version;
    argp_err_exit_status = 2;
    return argp_parse(&whole, argc, argv, flags, NULL, input);
}
