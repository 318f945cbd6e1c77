// SPDX-License-Identifier: BSD-3-Clause
/* The command line of hoop-bench: the options of nccl-tests where they mean something here, and our own. */
#include "bench.h"
#include "manual.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_JSON = 300, KEY_OSU, KEY_MALLOC, KEY_DIRTY, KEY_DETERMINISTIC, KEY_CALIBRATE, KEY_DEVICE };

static const struct argp_option table[] = {
    {NULL, 0, NULL, 0, "Sizes (suffixes K, M and G are powers of 1024):", 1},
    {"minbytes", 'b', "SIZE", 0, "smallest size (default 8)", 1},
    {"maxbytes", 'e', "SIZE", 0, "largest size (default 64M)", 1},
    {"stepfactor", 'f', "FACTOR", 0, "next size = size times FACTOR (default 4)", 1},
    {"stepbytes", 'i', "SIZE", 0, "next size = size + SIZE, instead", 1},
    {NULL, 0, NULL, 0, "What is called:", 2},
    {"op", 'o', "OPERATOR", 0,
     "sum, prod, min, max, avg, band, bor, bxor, land, lor, lxor, minloc, maxloc, or all (default sum)", 2},
    {"datatype", 'd', "TYPE", 0,
     "float, double, half, bfloat16, f8e4m3, f8e5m2, int8 to int64, uint8 to uint64, a pair (float_int32, "
     "double_int64, "
     "int32_int32, int64_int64), or all (default float)",
     2},
    {"root", 'r', "RANK", 0, "root of reduce and broadcast: a rank, or all (default 0)", 2},
    {"malloc", KEY_MALLOC, NULL, 0, "ordinary memory, not hoop_mem_alloc's", 2},
    {"device", KEY_DEVICE, "DEVICE", 0,
     "buffers in the memory of a CUDA device: cuda (each rank's own: its number on the host, modulo the devices), or "
     "cuda:N; sets "
     "HOOP_DEVICE",
     2},
    {"dirty", KEY_DIRTY, NULL, 0, "rewrite the send buffer before each isolated call, as a program would", 2},
    {"deterministic", KEY_DETERMINISTIC, NULL, 0,
     "time isolated calls with HOOP_DETERMINISTIC=1 too, by turns with those without, and show the price", 2},
    {NULL, 0, NULL, 0, "How often:", 3},
    {"iters", 'n', "COUNT", 0,
     "timed calls of each method (default: 20 to 1000 by size, fewer where they are slow); rounds of --calibrate (5)",
     3},
    {"warmup_iters", 'w', "COUNT", 0, "calls before the timed ones (default 5)", 3},
    {"check", 'c', "COUNT", 0, "calls whose results are checked; 0: none (default 1)", 3},
    {NULL, 0, NULL, 0, "Output:", 4},
    {"json", KEY_JSON, "FILE", 0, "also write all figures to FILE, replacing it", 4},
    {"osu", KEY_OSU, NULL, 0, "the layout of the OSU micro-benchmarks (isolated calls, out of place)", 4},
    {NULL, 0, NULL, 0, "Instead of a collective:", 5},
    {"calibrate", KEY_CALIBRATE, "FILE", OPTION_ARG_OPTIONAL,
     "measure the constants by which algorithms are chosen, and save them for this machine, or as FILE; takes up to a "
     "minute "
     "and wants the machine for itself",
     5},
    {NULL, 0, NULL, 0, NULL, 0},
};

static const char description[] =
    "Time a collective over a range of sizes and check its results. COLLECTIVE is all_reduce, reduce, broadcast, "
    "all_gather, reduce_scatter, all_to_all, all_gatherv or all_to_allv (with equal counts), gather, scatter or "
    "barrier. Run it under hooprun, or alone as the only rank. Or, with --calibrate, find out what this machine's "
    "communication costs.";

static const struct hoop_manual_section sections[] = {
    {"EXAMPLES", "  hooprun -n 2 hoop-bench all_reduce -b 8 -e 64M -f 8\n"
                 "  hooprun -n 4 hoop-bench reduce_scatter -d all -o all -e 1M\n"
                 "  hooprun -n 8 --no-prefix hoop-bench broadcast -r all --json b.json\n"
                 "  hooprun -n 4 hoop-bench all_reduce --device cuda\n"
                 "  HOOP_ALGO=ring hooprun -n 2 hoop-bench all_reduce --osu\n"
                 "  hooprun -n 4 --no-prefix hoop-bench --calibrate"},
    {"COLUMNS", "size\tthe larger of the bytes that a rank sends and receives\n"
                "count\telements: of the vector, or of one rank's block\n"
                "time\tof a call when many follow each other, mean over the ranks\n"
                "algbw\tsize / time; 1 GB/s is 10^9 bytes a second\n"
                "busbw\talgbw times 2(n-1)/n for all_reduce, 1 for reduce, broadcast and barrier, (n-1)/n for others: "
                "what a link carries, whatever n\n"
                "#wrong\telements that were not exactly the result, summed over all ranks\n"
                "p50, p99\tisolated calls: after a barrier, the time of the slowest rank; half of the calls, and 99 of "
                "100, took no longer\n"
                "plan\tthe algorithm and shape that was chosen (out of place, in place)\n"
                "ordered, ratio\twith --deterministic: p50 with HOOP_DETERMINISTIC=1, and over the p50 of the calls "
                "without it with which it took turns; then its plan\n"
                "\n"
                "The test data are such that the result is known to the bit for every order of reduction. An "
                "input that a call out of place has changed, and bytes written behind the buffer, count as wrong too."},
    {"CALIBRATION",
     "hoop chooses algorithms by a cost model with a few constants: what a hop, a message, a slice, a byte that is "
     "moved "
     "or combined cost. --calibrate runs every algorithm in several sizes, by as many ranks as there are "
     "cores and by all ranks in a crowd, and fits the constants to the times. It shows each with its spread over "
     "the rounds, how far predictions are off, and how good the choices are, before and after.\n"
     "\n"
     "The file lies in $XDG_CACHE_HOME/hoop, or $HOME/.cache/hoop, under a name made of the machine's architecture, "
     "processor, CPUs and NUMA nodes. HOOP_MODEL=auto uses it, HOOP_MODEL=FILE another. hoop-info shows the "
     "constants in force."},
    {"EXIT STATUS", "0\tall results were right\n"
                    "1\ta result was wrong (on all ranks)\n"
                    "2\twrong usage\n"
                    "3\ta call failed; the message says why"},
    {NULL, NULL},
};

static const struct hoop_manual_words words[] = {
    {"",
     "all_reduce reduce broadcast all_gather reduce_scatter all_to_all all_gatherv all_to_allv gather scatter barrier"},
    {"op", "sum prod min max avg band bor bxor land lor lxor minloc maxloc all"},
    {"datatype",
     "float double half bfloat16 f8e4m3 f8e5m2 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float_int32 "
     "double_int64 int32_int32 int64_int64 all"},
    {"root", "0 all"},
    {"device", "cuda"},
    {"json", "@file"},
    {"calibrate", "@file"},
    {NULL, NULL},
};

/* 0 is taken as any other size; the caller objects where it makes no sense. */
static size_t parse_size(const char *text, int key, struct argp_state *state)
{
    static const char suffixes[] = "KMGT";
    char *end;
    double size = strtod(text, &end);
    const char *suffix = *end != '\0' ? strchr(suffixes, *end & ~0x20) : NULL;

    if (suffix != NULL) {
        size *= (double)(1ull << 10 * (suffix - suffixes + 1));
        end++;
    }
    if (end == text || *end != '\0' || !(size >= 0 && size < 1e18))
        argp_error(state, "-%c %s: give a size in bytes, such as 8, 64K or 1.5M", key, text);
    return (size_t)size;
}

static int parse_count(const char *text, int key, int least, struct argp_state *state)
{
    char *end;
    const long count = strtol(text, &end, 10);

    if (end == text || *end != '\0' || count < least || count > 100 * 1000 * 1000)
        argp_error(state, "-%c %s: give a number from %d", key, text, least);
    return (int)count;
}

bool options_choose(const struct options *options, int type, int op)
{
    return (options->types & 1u << type) && (options->ops & 1u << op) &&
           (!options->collective->reduces || hoop_op_accepts((enum hoop_op)op, (enum hoop_type)type));
}

int options_pairs(const struct options *options)
{
    int pairs = 0;

    for (int type = 0; type < HOOP_TYPES; type++)
        for (int op = 0; op < HOOP_OPS; op++)
            pairs += options_choose(options, type, op);
    return pairs;
}

static unsigned parse_ops(const char *text, struct argp_state *state)
{
    if (strcmp(text, "all") == 0)
        return (1u << HOOP_OPS) - 1;
    for (int op = 0; op < HOOP_OPS; op++)
        if (strcmp(text, hoop_op_name((enum hoop_op)op)) == 0)
            return 1u << op;
    argp_error(state, "-o %s: give sum, prod, min, max, avg, band, bor, bxor, land, lor, lxor, minloc, maxloc or all",
               text);
    return 0;
}

static unsigned parse_types(const char *text, struct argp_state *state)
{
    const int type = data_type_parse(text);

    if (strcmp(text, "all") == 0)
        return (1u << HOOP_TYPES) - 1;
    if (type < 0)
        argp_error(
            state,
            "-d %s: give float, double, half, bfloat16, f8e4m3, f8e5m2, int8 to int64, uint8 to uint64, float_int32, "
            "double_int64, int32_int32, int64_int64 or all",
            text);
    return 1u << type;
}

static void parse_collective(struct options *options, const char *text, struct argp_state *state)
{
    if (options->collective != NULL)
        argp_error(state, "%s: one collective at a time", text);
    for (const struct collective *c = collectives; c->name != NULL; c++)
        if (strcmp(c->name, text) == 0)
            options->collective = c;
    if (options->collective == NULL)
        argp_error(state, "%s: no such collective", text);
}

static bool parse_how(int key, char *argument, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 'n':
        options->iterations = parse_count(argument, key, 1, state);
        return true;
    case 'w':
        options->warmups = parse_count(argument, key, 0, state);
        return true;
    case 'c':
        options->checks = parse_count(argument, key, 0, state);
        return true;
    case KEY_MALLOC:
        options->ordinary = true;
        return true;
    case KEY_DEVICE:
        if (strncmp(argument, "cuda", 4) != 0)
            argp_error(state, "--device %s: give cuda or cuda:N", argument);
        options->device = argument;
        return true;
    case KEY_DIRTY:
        options->dirty = true;
        return true;
    case KEY_CALIBRATE:
        options->calibrate = argument ? argument : "";
        return true;
    case KEY_DETERMINISTIC:
        options->deterministic = true;
        return true;
    case KEY_OSU:
        options->osu = true;
        return true;
    case KEY_JSON:
        options->json = argument;
        return true;
    default:
        return false;
    }
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct options *options = state->input;

    if (parse_how(key, argument, state))
        return 0;
    switch (key) {
    case 'b':
        options->least = parse_size(argument, key, state);
        return 0;
    case 'e':
        options->most = parse_size(argument, key, state);
        return 0;
    case 'f':
        options->factor = (size_t)parse_count(argument, key, 1, state);
        return 0;
    case 'i':
        options->step = parse_size(argument, key, state);
        return 0;
    case 'o':
        options->ops = parse_ops(argument, state);
        return 0;
    case 'd':
        options->types = parse_types(argument, state);
        return 0;
    case 'r':
        options->root = strcmp(argument, "all") == 0 ? -1 : parse_count(argument, key, 0, state);
        return 0;
    case ARGP_KEY_ARG:
        parse_collective(options, argument, state);
        return 0;
    case ARGP_KEY_END:
        if (options->collective == NULL && options->calibrate == NULL)
            argp_error(state, "which collective?");
        if (options->collective && options->calibrate)
            argp_error(state, "--calibrate takes no collective: it runs several");
        if (options->device && (options->ordinary || options->calibrate))
            argp_error(state, "--device goes with neither --malloc nor --calibrate: they are for host memory");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* What follows from the collective and from what was left out. */
static void complete(struct options *options)
{
    if (options->factor == 0)
        options->factor = options->step > 0 ? 1 : 4;
    if (options->factor == 1 && options->step == 0)
        options->step = 1048576;
    if (options->most < options->least)
        options->most = options->least;
    if (options->factor > 1 && options->least == 0)
        options->least = 1; /* or no other size would follow */
    if (options->collective->shape == SHAPE_NONE) {
        options->least = options->most = 0;
        options->types = 1u << HOOP_F32;
    }
    if (!options->collective->reduces)
        options->ops = 1u << HOOP_SUM;
    if (!options->collective->rooted)
        options->root = 0;
}

void options_parse(struct options *options, int argc, char **argv)
{
    static const struct argp argp = {table, parse, "COLLECTIVE", description, NULL, NULL, NULL};
    static const struct hoop_manual manual = {
        "hoop-bench", "time a collective and check its results", &argp, sections, words, true};

    *options = (struct options){
        .least = 8, .most = 64u << 20, .warmups = 5, .checks = 1, .types = 1u << HOOP_F32, .ops = 1u << HOOP_SUM};
    hoop_manual_parse(&manual, argc, argv, 0, options);
    if (options->calibrate)
        return;
    complete(options);
    if (options_pairs(options) == 0) {
        fputs("hoop-bench: band, bor, bxor, land, lor and lxor take integers only, minloc and maxloc pairs, and pairs "
              "take "
              "nothing else: give another -d\n",
              stderr);
        exit(2);
    }
}
