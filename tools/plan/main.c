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
    KEY_BANDWIDTH,
    KEY_LATENCY,
    KEY_POST,
    KEY_COPY,
    KEY_REDUCE,
    KEY_SLOTS,
    KEY_SLICE,
    KEY_TABLE,
    KEY_SVG,
    KEY_GROUPS,
    KEY_TOPO,
    RANKS_MOST = 4096,
    SIMULATED_MOST = 1 << 20
};

static const struct argp_option argp_options[] = {
    {"algo", 'a', "NAME", 0,
     "the algorithm, as list names it, or hier(A,B): A across groups and B inside; simulate: or all", 0},
    {"groups", KEY_GROUPS, "SIZES", 0,
     "groups of neighbouring ranks, for hier: 4 for groups of 4, 3,2 for 3 and 2 by turns (default HOOP_GROUPS, else "
     "none)",
     0},
    {"ranks", 'n', "N", 0, "number of ranks", 0},
    {"rank", KEY_RANK, "R|all", 0, "print: only this rank's plan (default all)", 0},
    {"root", KEY_ROOT, "R", 0, "root of reduce and broadcast (default 0; check: every root)", 0},
    {"channels", KEY_CHANNELS, "C", 0, "copies of the plan side by side, each on its part of the chunks (default 1)",
     0},
    {"in-place", KEY_IN_PLACE, NULL, 0, "the result overwrites the input (check: only that case)", 0},
    {"unfused", KEY_UNFUSED, NULL, 0, "print: the author's steps, without the marks of the fuse pass", 0},
    {"all", KEY_ALL, NULL, 0, "check: every algorithm, collective and number of ranks", 0},
    {"most", KEY_MOST, "N", 0, "check --all: the largest number of ranks (default 128)", 0},
    {"size", 's', "BYTES", 0, "explain, simulate: bytes of the whole vector, with suffix K, M or G", 0},
    {"cores", KEY_CORES, "N", 0, "explain: cores that the ranks share (default: those of this process)", 0},
    {"json", KEY_JSON, NULL, 0, "explain: one JSON object", 0},
    {"bandwidth", KEY_BANDWIDTH, "GB/s", 0, "simulate: of each rank's port, each way (default 10)", 0},
    {"latency", KEY_LATENCY, "NS", 0, "simulate: from port to port (default 1000)", 0},
    {"post", KEY_POST, "NS", 0, "simulate: work of the sender for a message (default 150)", 0},
    {"copy", KEY_COPY, "GB/s", 0, "simulate: local copies (default 8; 0: no time)", 0},
    {"reduce", KEY_REDUCE, "GB/s", 0, "simulate: combining (default 6; 0: no time)", 0},
    {"slots", KEY_SLOTS, "N", 0, "simulate: messages that a link holds (default 4)", 0},
    {"slice", KEY_SLICE, "BYTES", 0, "simulate: largest piece of a chunk (default 128K)", 0},
    {"topo", KEY_TOPO, "LEVELS|FILE", 0,
     "simulate, explain: the network's levels, such as \"hosts:4@25,2000 numa:2 ranks:8\", or a machine's file; see "
     "TOPOLOGY",
     0},
    {"table", KEY_TABLE, NULL, 0, "simulate: a table of 2, 4, 8, … ranks up to -n (default 1024) and four sizes", 0},
    {"svg", KEY_SVG, "FILE", 0, "simulate --table: also a plot", 0},
    {"output", 'o', "FILE", 0, "draw, print: write to the file instead of standard output", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static const char *const commands[] = {"list", "print", "check", "draw", "explain", "simulate"};
enum command { LIST, PRINT, CHECK, DRAW, EXPLAIN, SIMULATE, COMMANDS };

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

static double read_real(struct argp_state *state, const char *text)
{
    char *end;

    errno = 0;
    const double number = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(number >= 0 && number <= 1e12))
        argp_error(state, "%s: a number from 0 to 1e12 is needed", text);
    return number;
}

static void read_algo(struct argp_state *state, struct plan_options *options, const char *name)
{
    options->algo = options->inter = options->intra = NULL;
    if (strcmp(name, "all") != 0 && !hoop_algo_read(name, &options->algo, &options->inter, &options->intra))
        argp_error(state, "%s: no such algorithm; there are %s, and hier(A,B) of two of them", name, algo_names);
}

static void check_groups(struct argp_state *state, const char *sizes)
{
    struct hoop_groups *groups = NULL;

    if (hoop_groups_cut(&groups, 1, sizes) != HOOP_OK)
        argp_error(state, "%s", hoop_last_error(NULL));
    hoop_groups_free(groups);
}

/* HOOP_GROUPS, where it tells sizes. */
static void default_groups(struct argp_state *state, struct plan_options *options)
{
    const char *sizes = getenv("HOOP_GROUPS");

    if (options->group_sizes != NULL || sizes == NULL || strcmp(sizes, "auto") == 0 || strcmp(sizes, "none") == 0)
        return;
    check_groups(state, sizes);
    options->group_sizes = sizes;
}

/* Those of the topology. */
static void default_ranks(struct plan_options *options)
{
    long ranks = 1;

    if (options->ranks > 0 || options->topo.levels == 0)
        return;
    for (int i = 0; i < options->topo.levels && ranks <= SIMULATED_MOST; i++)
        ranks *= options->topo.level[i].count;
    if (ranks <= SIMULATED_MOST)
        options->ranks = (int)ranks;
    options->ranks_of_topo = true;
}

static void take_word(struct argp_state *state, struct line *line, const char *word)
{
    if (line->command < 0) {
        for (int i = 0; i < COMMANDS; i++)
            if (strcmp(word, commands[i]) == 0)
                line->command = i;
        if (line->command < 0)
            argp_error(state, "%s: no such command; there are list, print, check, draw, explain and simulate", word);
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
        argp_error(state, "a command is missing: list, print, check, draw, explain or simulate");
    if (line->command == LIST || (line->command == CHECK && options->all))
        return;
    if (options->coll < 0)
        argp_error(state, "%s needs a collective, such as all_reduce", commands[line->command]);
    if (options->algo == NULL && line->command != EXPLAIN && line->command != SIMULATE)
        argp_error(state, "%s needs an algorithm, such as --algo ring", commands[line->command]);
    if (options->ranks == 0 && !options->table)
        argp_error(state, "%s needs a number of ranks, such as -n 4", commands[line->command]);
    if (options->ranks > RANKS_MOST && line->command != SIMULATE && line->command != EXPLAIN)
        argp_error(state, "%s takes at most %d ranks", commands[line->command], RANKS_MOST);
    if (options->rank >= options->ranks && options->rank > 0)
        argp_error(state, "rank %d is outside of 0 to %d", options->rank, options->ranks - 1);
    if (options->root >= options->ranks && options->root > 0)
        argp_error(state, "root %d is outside of 0 to %d", options->root, options->ranks - 1);
}

/* The parameters of simulate. */
static error_t parse_network(int key, char *argument, struct argp_state *state)
{
    struct plan_options *options = &((struct line *)state->input)->options;
    struct hoop_simulation *network = &options->network;

    switch (key) {
    case KEY_BANDWIDTH:
        network->bandwidth = read_real(state, argument);
        return 0;
    case KEY_LATENCY:
        network->latency = read_real(state, argument);
        return 0;
    case KEY_POST:
        network->post = read_real(state, argument);
        return 0;
    case KEY_COPY:
        network->copy = read_real(state, argument);
        return 0;
    case KEY_REDUCE:
        network->reduce = read_real(state, argument);
        return 0;
    case KEY_SLOTS:
        network->slots = read_number(state, "--slots", argument, 1, 64);
        return 0;
    case KEY_SLICE:
        network->frame = read_size(state, argument);
        return 0;
    case KEY_TABLE:
        options->table = true;
        return 0;
    case KEY_TOPO:
        if (!read_topo(argument, &options->topo, &options->machine))
            argp_error(state, "%s", hoop_last_error(NULL));
        return 0;
    case KEY_SVG:
        options->svg = argument;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct line *line = state->input;
    struct plan_options *options = &line->options;

    switch (key) {
    case 'a':
        read_algo(state, options, argument);
        return 0;
    case KEY_GROUPS:
        options->group_sizes = argument;
        check_groups(state, argument);
        return 0;
    case 'n':
        options->ranks = read_number(state, "-n", argument, 1, SIMULATED_MOST);
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
        default_groups(state, options);
        default_ranks(options);
        check_line(state, line);
        return 0;
    default:
        return parse_network(key, argument, state);
    }
}

static const struct argp parser = {
    argp_options,
    parse,
    "list\nprint COLLECTIVE\ncheck COLLECTIVE\ncheck --all\ndraw COLLECTIVE\nexplain COLLECTIVE\nsimulate COLLECTIVE",
    "Shows, proves, draws and explains the plans by which hoop's algorithms solve the collectives.\v"
    "list names the algorithms and what each solves. print writes plans in their text form. check runs the plans of "
    "all ranks on symbols and proves that every rank gets its result, that nothing deadlocks, with one free slot a "
    "link and with lent buffers, that lanes do not race, and that the cost is the algorithm's own formula. draw makes "
    "an SVG picture: a column a rank, time downwards, an arrow a message, labelled by its chunk. explain tells which "
    "algorithm a communicator on this machine would choose "
    "for a size, and why: every candidate with its predicted time, the sizes for which the choice stays the same, and "
    "what setting would change "
    "it; with --topo it reckons with the uplinks and the latency of the outermost level between groups, and also tells "
    "how long each would take on such a network, by simulation. It reads the settings (HOOP_ALGO, "
    "HOOP_FLAT_MAX, HOOP_SLICE, HOOP_MODEL) as a communicator does. simulate "
    "runs the plans on a virtual network: each rank has one port and one core, "
    "and messages share them; with --topo also the uplinks of hosts and what else is named. Beyond 2048 ranks one "
    "rank, "
    "or those of one host or group, stand for all where the plans are turned copies of each other.",
    NULL,
    NULL,
    NULL};

static const struct hoop_manual_section sections[] = {
    {"EXAMPLES", "  hoop-plan print all_reduce --algo ring -n 4 --rank 1\n"
                 "  hoop-plan check broadcast --algo dbtree -n 12\n"
                 "  hoop-plan check --all\n"
                 "  hoop-plan draw all_reduce --algo dbtree -n 8 -o dbtree.svg\n"
                 "  hoop-plan explain all_reduce -s 1M -n 8 --cores 8\n"
                 "  hoop-plan explain all_reduce -s 1G -n 16 --topo box-of-8-gpus.xml\n"
                 "  hoop-plan simulate all_reduce --algo all -s 1M -n 1024\n"
                 "  hoop-plan simulate all_reduce --algo 'hier(rhd,twoshot)' -s 1M --topo 'hosts:64 ranks:16'\n"
                 "  hoop-plan simulate all_reduce --table -n 16384 --topo 'hosts:1024 ranks:16' --svg table.svg\n"},
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
                  "no_store\tneed not be stored\n"
                  "joined\ta further part of the message before it on the same link\n"
                  "behind\twhat comes in is the right operand: to op from, from op received\n"},
    {"TOPOLOGY", "The levels of a network, the outermost first and the ranks last. Each word is a level's\n"
                 "name, the number of its units in a unit of the level before, and perhaps the GB/s of a\n"
                 "unit's uplink each way, which all its ranks share (of a rank: its port), and the ns that\n"
                 "a message takes between ranks of different units. Otherwise the uplinks are as here:\n"
                 "\n"
                 "hosts\t25 GB/s, 2000 ns (also levels of other names)\n"
                 "sockets\t30 GB/s, 500 ns\n"
                 "numa\t40 GB/s, 300 ns\n"
                 "ranks\t10 GB/s, 200 ns\n"
                 "\n"
                 "With -n inner levels are filled first and the outermost takes the rest; without it the\n"
                 "number of ranks is the product. Units of the outermost level that has several are the\n"
                 "groups of hier. What is no such text is a file that hoop-topo reads, or \"synthetic:\"\n"
                 "and a description: a host with its sockets and NUMA nodes and a rank for each core.\n"
                 "\n"
                 "explain with a file of a machine that has GPUs: a rank for each GPU, with -n on as many\n"
                 "such hosts as are needed. The rates are those of the rings that hoop-topo --rings finds,\n"
                 "and the result is also told as nccl-tests count it, as bus bandwidth.\n"},
    {"EXIT CODES", "0\tdone; check: everything is proved\n"
                   "1\tcheck: a plan is wrong, as the text on standard error says; or the output\n"
                   "cannot be written, or the algorithm does not solve the problem\n"
                   "2\twrong usage\n"},
    {NULL, NULL},
};

static const struct hoop_manual_words words[] = {
    {"", command_words}, {"algo", algo_names}, {"rank", "all"}, {"output", "@file"}, {"svg", "@file"}, {NULL, NULL},
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
    struct line line = {
        .command = -1,
        .options = {
            .coll = -1,
            .rank = ALL_RANKS,
            .root = ALL_ROOTS,
            .channels = 1,
            .most = 128,
            .network = {
                .frame = 131072, .slots = 4, .bandwidth = 10, .latency = 1000, .post = 150, .copy = 8, .reduce = 6}}};

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
    case EXPLAIN:
        return explain_choice(&line.options);
    default:
        return simulate_plans(&line.options);
    }
}
