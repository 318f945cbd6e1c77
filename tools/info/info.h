// SPDX-License-Identifier: BSD-3-Clause
/* What hoop-info tells: facts of the build and of the machine. */
#ifndef HOOP_INFO_H
#define HOOP_INFO_H

#include <stdbool.h>

struct fact {
    const char *key, *name; /* for JSON, for people */
    char value[512];        /* "" if it cannot be told */
    const char *unit;       /* "B": bytes; "" */
    bool number;            /* value is a JSON number */
    char note[256];         /* what follows from it for hoop; "" if nothing */
};

enum { MOST_FACTS = 32 };

/* Fill the array; return how many. */
int build_facts(struct fact facts[MOST_FACTS]);
int machine_facts(struct fact facts[MOST_FACTS]);

/* devices.c: the CUDA devices, for people and as a member of the JSON object. */
void print_devices(void);
void json_devices(void);

/* The tightest limit of the memory cgroups that this process is in, version 1 or 2. Returns 1 with *bytes and *used
 * (what that cgroup holds now), 0 if there is no limit, -1 if it cannot be told. */
int cgroup_memory(unsigned long long *bytes, unsigned long long *used);

#endif
