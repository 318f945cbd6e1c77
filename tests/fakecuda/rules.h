// SPDX-License-Identifier: BSD-3-Clause
/* What the tests of the fake's rules have in common. Each test is a process of its own, so that its environment describes its
 * machine. */
#ifndef HOOP_FAKECUDA_RULES_H
#define HOOP_FAKECUDA_RULES_H

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakecuda/calls.h"

extern struct calls cu;
extern handle context[4];

#define EXPECT(result, call)                                                         \
    do {                                                                             \
        const int got = (call);                                                      \
        ck_assert_msg(got == (result), "%s gives %d, not %d", #call, got, (result)); \
    } while (0)
#define GOOD(call) EXPECT(OK, call)

/* The driver's entry points. */
void load(void);
/* The driver, and the primary contexts of the first devices; the first is current. */
void begin(int devices);
/* A test kernel, loaded; a stream of the current context; memory of it; what its first word is. */
handle function(const char *name);
handle stream(void);
address memory(size_t bytes);
uint64_t word(address at);
int run(handle kernel, unsigned blocks, handle queue, struct fake_test argument);

void rules_of_work(TCase *tests);    /* rules_work.c */
void rules_of_sharing(TCase *tests); /* rules_share.c */

#endif
