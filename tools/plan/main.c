// SPDX-License-Identifier: BSD-3-Clause
/* hoop-plan: shows, proves, draws and explains what the algorithms plan. */
#include <errno.h>
#include <hoop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manual.h"
#include "plan_tool.h"

enum {
    KEY_ROOT = 0x100,
    KEY_RANK,
    KEY_CHANNELS,
    KEY_IN_PLACE,
    KEY_ALL,
    KEY_UNFUSED,
    KEY_MOST,
    KEY_CORES,
    KEY_JSON,
    RANKS_MOST = 4096
};

static const struct argp_option argp_options[] = {
    {"algo", 'a', "NAME", 0, "the algorithm, as list names it", 0},
    {"ranks", 'n', "N", 0, "number of ranks", 0},
    {"rank", KEY_RANK, "R|all", 0, "print: only this rank's plan (default all)", 0},
    {"root", KEY_ROOT, "R", 0, "root of reduce and broadcast (default 0; check: every root)", 0},
    {"channels", KEY_CHANNELS, "C", 0, "copies of the plan side by side, each on its part of the chunks (default 1)",
     0},
    {"in-place", KEY_IN_PLACE, NULL, 0, "the result overwrites the input (check: only that case)", 0},
    {"unfused", KEY_UNFUSED, NULL, 0, "print: the author's steps, without the marks of the fuse pass", 0},
    {"all", KEY_ALL, NULL, 0, "check: every algorithm, collective and number of ranks", 0},
    {"most", KEY_MOST, "N", 0, "check --all: the largest number of ranks (default 128)", 0},
    {"size", 's', "BYTES", 0, "explain: bytes of the whole vector, with suffix K, M or G", 0},
    {"cores", KEY_CORES, "N", 0, "explain: cores that the ranks share (default: those of this process)", 0},
    {"json", KEY_JSON, NULL, 0, "explain: one JSON object", 0},
    {"output", 'o', "FILE", 0, "draw, print: write to the file instead of standard output", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static const char *const commands[] = {"list", "print", "check", "draw", "explain"};
enum command { LIST, PRINT, CHECK, DRAW, EXPLAIN, COMMANDS };

/* The words that the library knows, parted by blanks. */
static char algo_names[256], command_words[256];

struct line {
    struct plan_options options;
    int command; /* enum command, or -1: none yet */
};

static int read_number(struct argp_state *state, const char *what, const char *text, int least, int most)
{
    char *end;

    errno = 0;
    const long number = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < least || number > most)
        argp_error(state, "%s: %s is a number from %d to %d", text, what, least, most);
    return (int)number;
}

static size_t read_size(struct argp_state *state, const char *text)
{
    static const char suffixes[] = "KMG";
    char *end;

    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    const char *suffix = *end != '\0' && end[1] == '\0' ? strchr(suffixes, *end) : NULL;
    const unsigned shift = suffix != NULL ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
    if (errno != 0 || *text < '0' || *text > '9' || (*end != '\0' && suffix == NULL) || number >= 1ull << 50 >> shift)
        argp_error(state, "%s: a size is a number of bytes below 2^50, with suffix K, M or G", text);
    return (size_t)number << shift;
}

static const struct hoop_algo *read_algo(struct argp_state *state, const char *name)
{
    const struct hoop_algo *algo = hoop_algo_find(name);

    if (algo == NULL)
        argp_error(state, "%s: no such algorithm; there are %s", name, algo_names);
    return algo;
}

static void take_word(struct argp_state *state, struct line *line, const char *word)
{
    if (line->command < 0) {
        for (int i = 0; i < COMMANDS; i++)
            if (strcmp(word, commands[i]) == 0)
                line->command = i;
        if (line->command < 0)
            argp_error(state, "%s: no such command; there are list, print, check, draw and explain", word);
    } else if (line->options.coll < 0) {
        line->options.coll = hoop_coll_find(word);
        if (line->options.coll < 0)
            argp_error(state,
                       "%s: no such collective; there are all_reduce, reduce, broadcast, all_gather, "
                       "reduce_scatter, barrier, all_to_all, gather and scatter",
                       word);
    } else {
        argp_error(state, "%s: one collective is enough", word);
    }
}

/* The command line is read: is it whole? */
static void check_line(struct argp_state *state, const struct line *line)
{
    const struct plan_options *options = &line->options;

    if (line->command < 0)
        argp_error(state, "a command is missing: list, print, check, draw or explain");
    if (line->command == LIST || (line->command == CHECK && options->all))
        return;
    if (options->coll < 0)
        argp_error(state, "%s needs a collective, such as all_reduce", commands[line->command]);
    if (options->algo == NULL && line->command != EXPLAIN)
        argp_error(state, "%s needs an algorithm, such as --algo ring", commands[line->command]);
    if (options->ranks == 0)
        argp_error(state, "%s needs a number of ranks, such as -n 4", commands[line->command]);
    if (options->rank >= options->ranks)
        argp_error(state, "rank %d is outside of 0 to %d", options->rank, options->ranks - 1);
    if (options->root >= options->ranks)
        argp_error(state, "root %d is outside of 0 to %d", options->root, options->ranks - 1);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct line *line = state->input;
    struct plan_options *options = &line->options;

    switch (key) {
    case 'a':
        options->algo = read_algo(state, argument);
        return 0;
    case 'n':
        options->ranks = read_number(state, "-n", argument, 1, RANKS_MOST);
        return 0;
    case 'o':
        options->output = argument;
        return 0;
    case 's':
        options->bytes = read_size(state, argument);
        return 0;
    case KEY_CORES:
        options->cores = read_number(state, "--cores", argument, 1, RANKS_MOST);
        return 0;
    case KEY_JSON:
        options->json = true;
        return 0;
    case KEY_RANK:
        options->rank =
            strcmp(argument, "all") == 0 ? ALL_RANKS : read_number(state, "--rank", argument, 0, RANKS_MOST - 1);
        return 0;
    case KEY_ROOT:
        options->root = read_number(state, "--root", argument, 0, RANKS_MOST - 1);
        return 0;
    case KEY_CHANNELS:
        options->channels = read_number(state, "--channels", argument, 1, HOOP_MAX_CHANNELS);
        return 0;
    case KEY_MOST:
        options->most = read_number(state, "--most", argument, 1, RANKS_MOST);
        return 0;
    case KEY_IN_PLACE:
        options->in_place = true;
        return 0;
    case KEY_UNFUSED:
        options->unfused = true;
        return 0;
    case KEY_ALL:
        options->all = true;
        return 0;
    case ARGP_KEY_ARG:
        take_word(state, line, argument);
        return 0;
    case ARGP_KEY_END:
        check_line(state, line);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {
    argp_options,
    parse,
    "list\nprint COLLECTIVE\ncheck COLLECTIVE\ncheck --all\ndraw COLLECTIVE\nexplain COLLECTIVE",
    "Shows, proves, draws and explains the plans by which hoop's algorithms solve the collectives.\v"
    "list names the algorithms and what each solves. print writes plans in their text form. check runs the plans of "
    "all ranks on symbols and proves that every rank gets its result, that nothing deadlocks, with one free slot a "
    "link and with lent buffers, that lanes do not race, and that the cost is the algorithm's own formula. draw makes "
    "an SVG picture: a column a rank, time downwards, an arrow a message, labelled by its chunk. explain tells which "
    "algorithm a communicator on this machine would choose "
    "for a size, and why: every candidate with its predicted time, the sizes for which the choice stays the same, and "
    "what setting would change "
    "it. It reads the settings (HOOP_ALGO, HOOP_FLAT_MAX, HOOP_SLICE, HOOP_MODEL) as a communicator does.",
    NULL,
    NULL,
    NULL};

static const struct hoop_manual_section sections[] = {
    {"EXAMPLES", "  hoop-plan print all_reduce --algo ring -n 4 --rank 1\n"
                 "  hoop-plan check broadcast --algo dbtree -n 12\n"
                 "  hoop-plan check --all\n"
                 "  hoop-plan draw all_reduce --algo dbtree -n 8 -o dbtree.svg\n"
                 "  hoop-plan explain all_reduce -s 1M -n 8 --cores 8\n"},
    {"TEXT FORM", "A plan's head names algorithm, collective and problem; then come the lanes, a step\n"
                  "a line: its kind, the peer where there is one, the buffer and chunk written, the\n"
                  "buffer and chunk read, and flags. Lanes run side by side, the steps of a lane in\n"
                  "order. The k-th send to a rank in a lane meets that rank's k-th receive.\n"
                  "\n"
                  "copy\tto = from\n"
                  "reduce\tto = from op to\n"
                  "send\tfrom goes to the peer; staged: copied out at once, not lent\n"
                  "recv\tto = received\n"
                  "recv_reduce\tto = received op from\n"
                  "after\twaits until another lane has done a step\n"
                  "forward\tmay be sent on by the next step in the same pass\n"
                  "no_store\tneed not be stored\n"},
    {"EXIT CODES", "0\tdone; check: everything is proved\n"
                   "1\tcheck: a plan is wrong, as the text on standard error says; or the output\n"
                   "cannot be written, or the algorithm does not solve the problem\n"
                   "2\twrong usage\n"},
    {NULL, NULL},
};

static const struct hoop_manual_words words[] = {
    {"", command_words}, {"algo", algo_names}, {"rank", "all"}, {"output", "@file"}, {NULL, NULL},
};

static const struct hoop_manual manual = {.name = "hoop-plan",
                                          .summary = "show, prove, draw and explain the plans of collectives",
                                          .argp = &parser,
                                          .sections = sections,
                                          .words = words};

static void add_word(char *text, size_t size, const char *word)
{
    const size_t used = strlen(text);

    snprintf(text + used, size - used, "%s%s", used > 0 ? " " : "", word);
}

/* The words of the completion, from the lists that the library has. */
static void collect_words(void)
{
    for (int i = 0; hoop_algo_get(i) != NULL; i++)
        add_word(algo_names, sizeof algo_names, hoop_algo_get(i)->name);
    for (int i = 0; i < COMMANDS; i++)
        add_word(command_words, sizeof command_words, commands[i]);
    for (int coll = 0; coll < HOOP_COLLS; coll++)
        add_word(command_words, sizeof command_words, hoop_coll_name((enum hoop_coll)coll));
}

int main(int argc, char **argv)
{
    struct line line = {.command = -1,
                        .options = {.coll = -1, .rank = ALL_RANKS, .root = ALL_ROOTS, .channels = 1, .most = 128}};

    collect_words();
    if (hoop_manual_parse(&manual, argc, argv, 0, &line) != 0)
        return 2;
    switch (line.command) {
    case LIST:
        return list_algorithms();
    case PRINT:
        return print_plans(&line.options);
    case CHECK:
        return line.options.all ? check_all(&line.options) : check_one(&line.options);
    case DRAW:
        return draw_plans(&line.options);
    default:
        return explain_choice(&line.options);
    }
}
