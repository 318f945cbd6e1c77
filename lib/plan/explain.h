// SPDX-License-Identifier: BSD-3-Clause
/* The planner's explanation of a choice. */
#ifndef HOOP_PLAN_EXPLAIN_H
#define HOOP_PLAN_EXPLAIN_H

#include "hoop/plan.h"

/* How long calls of the same collective, size and algorithm took on this rank. */
struct hoop_measured {
    uint64_t calls; /* 0: none were measured */
    uint64_t least_ns, mean_ns;
};

/* What was chosen by measured time for one kind of calls of a size. */
enum { HOOP_TUNED_MOST = 8 };
struct hoop_tuned {
    const char *kind; /* what is combined: wisdom.h */
    bool in_place;
    const struct hoop_algo *algo; /* NULL: still under trial */
    bool here;                    /* measured by this communicator, else read from HOOP_WISDOM */
    uint64_t ns;                  /* what it took; 0: not known */
    int trials, wanted;           /* while under trial */
};

/* How calls on device memory go. */
struct hoop_device_way {
    int ordinal;      /* of this rank's device; -1: none */
    const char *name; /* of the device */
    uint64_t lent;    /* frames that kernels have lent to peers so far, and not copied */
    const char *way;  /* "staged", "kernel"; NULL: there are no such calls */
    const char *why;  /* the reason, without quotes and line ends */
};

/* What a communicator knows beyond the choice. */
struct hoop_experience {
    struct hoop_measured plans, direct; /* of plans; of work in each other's memory */
    struct hoop_tuned tuned[HOOP_TUNED_MOST];
    int kinds; /* entries of tuned */
    struct hoop_device_way device;
};

/* As hoop_plan_explain, with what is known from calls (NULL: there is no communicator that could). */
enum hoop_status hoop_explain_write(const struct hoop_choice *choice, const struct hoop_problem *problem, size_t bytes,
                                    const struct hoop_experience *experience, bool json, char *text, size_t size);

#endif
