// SPDX-License-Identifier: BSD-3-Clause
/* What the commands of hoop-plan share. */
#ifndef HOOP_TOOLS_PLAN_TOOL_H
#define HOOP_TOOLS_PLAN_TOOL_H

#include <hoop/plan.h>

enum { ALL_RANKS = -1, ALL_ROOTS = -1 };

/* The command line. */
struct plan_options {
    const struct hoop_algo *algo, *inter, *intra;
    const char *group_sizes; /* NULL: none given */
    int coll;                /* enum hoop_coll, or -1: none given */
    int ranks;               /* 0: none given */
    int rank;                /* or ALL_RANKS */
    int root;                /* or ALL_ROOTS: none given */
    int channels;
    int most; /* check --all: the largest number of ranks */
    size_t bytes;
    int cores; /* 0: those of this process */
    bool in_place, all, unfused, json, table;
    struct hoop_simulation network; /* simulate: the parameters */
    struct hoop_network topo;       /* no levels: none given */
    bool ranks_of_topo;             /* the number of ranks was not given, but is that of the topology */
    const char *machine;            /* the file that --topo names; NULL: none */
    const char *svg;                /* simulate: NULL: no plot */
    const char *output;             /* NULL: standard output */
};

/* Read --topo: words such as "hosts:4 ranks:8", or a file that hoop_topo_load reads, then *machine is its name; says what is wrong. */
bool read_topo(const char *text, struct hoop_network *network, const char **machine);
/* The network of the command line for so many ranks: its inner levels are filled first, and the outermost takes the rest. */
struct hoop_network network_of(const struct plan_options *options, int ranks);
/* Ranks of a unit of the outermost level of which there are several, or 0: those of a level below ranks make no groups. */
int group_of(const struct hoop_network *network);
/* "hosts:4@25,2000 ranks:8@10,200". */
void network_text(const struct hoop_network *network, char *text, size_t size);

/* Build the plans of all ranks; plan has room for problem->ranks. Says what is wrong; false: nothing is left behind. */
bool build_plans(struct hoop_plan **plan, const struct hoop_algo *algo, struct hoop_problem problem, bool fuse);
void free_plans(struct hoop_plan **plan, int ranks);

/* The problem of the command line, for so many ranks and rank 0; its groups live until one of other ranks is read. Says what is wrong. */
bool read_problem(const struct plan_options *options, int ranks, struct hoop_problem *problem);

/* Reduce and broadcast have a root. */
bool is_rooted(enum hoop_coll coll);

/* What simulate --table found: times in us for 2 << row ranks; negative: not simulated. */
enum { TABLE_SIZES = 4, TABLE_ROWS = 14, TABLE_COLUMNS = 16 };
struct column {
    const struct hoop_algo *algo, *inter, *intra;
    char name[HOOP_ALGO_TEXT];
};
struct table {
    size_t size[TABLE_SIZES];
    struct column column[TABLE_COLUMNS];
    int columns, rows;
    double time[TABLE_SIZES][TABLE_ROWS][TABLE_COLUMNS];
};

/* Plot it into options->svg; says what is wrong. */
bool plot_table(const struct table *table, const struct plan_options *options);

/* The commands; each returns the exit code. */
int list_algorithms(void);
int print_plans(const struct plan_options *options);
int check_one(const struct plan_options *options);
int check_all(const struct plan_options *options);
int draw_plans(const struct plan_options *options);
int explain_choice(const struct plan_options *options);
/* explain for kernels on the GPUs of options->machine. *done: it has several, and it is done. */
int explain_gpus(const struct plan_options *options, bool *done);
int simulate_plans(const struct plan_options *options);

/* explain --topo: all candidates simulated by the constants of the choice, the fastest marked; as text, or as a further field of a JSON
 * object, with a comma before it. */
void simulate_levels(const struct plan_options *options, const struct hoop_choice *choice);

#endif
