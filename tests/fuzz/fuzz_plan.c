// SPDX-License-Identifier: BSD-3-Clause
/* The reader of plan texts: any bytes are read or refused; what is read prints to a text that reads as the same plan
 * and prints the same; and the checker survives it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hoop/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static char *print(const struct hoop_plan *plan, size_t *size)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, size);

    check(file != NULL && hoop_plan_print(plan, file) == HOOP_OK && fclose(file) == 0);
    return text;
}

/* As if every rank had this plan, if it is small; the verdict does not matter. */
static void prove(struct hoop_plan *plan)
{
    enum { RANKS = 4 };
    struct hoop_plan *plans[RANKS];
    struct hoop_check how = {.slices = 2, .credit = 1, .borrow = true};

    if (plan->problem.ranks > RANKS || plan->grid > 4096 || plan->tmp > 4096)
        return;
    const size_t size = sizeof *plan + plan->lanes * sizeof plan->lane[0];
    for (int i = 0; i < plan->problem.ranks; i++) { /* the heads are copies, the steps are shared */
        plans[i] = malloc(size);
        check(plans[i] != NULL);
        memcpy(plans[i], plan, size);
        plans[i]->problem.rank = i;
    }
    check((hoop_plan_check(plans, &how) == HOOP_OK) == (how.fault[0] == '\0'));
    for (int i = 0; i < plan->problem.ranks; i++)
        free(plans[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hoop_plan *plan, *again;
    size_t size, size_again;

    if (hoop_plan_parse(&plan, (const char *)data, bytes) != HOOP_OK)
        return 0;
    char *text = print(plan, &size);
    check(hoop_plan_parse(&again, text, size) == HOOP_OK);
    char *text_again = print(again, &size_again);
    check(size == size_again && memcmp(text, text_again, size) == 0);
    prove(plan);
    hoop_plan_free(plan);
    hoop_plan_free(again);
    free(text);
    free(text_again);
    return 0;
}
