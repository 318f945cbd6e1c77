// SPDX-License-Identifier: BSD-3-Clause
/* Reduction expressions, hash-consed: see check.h. */
#include <string.h>

#include "base/alloc.h"
#include "plan/check.h"

static uint32_t hash_pair(const struct expr_table *table, uint32_t a, uint32_t b)
{
    uint64_t hash = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u;

    return (uint32_t)(hash >> 32) & (table->slots - 1);
}

static bool grow_exprs(struct expr_table *table, uint32_t room)
{
    struct expr *expr = hoop_realloc(table->expr, room, sizeof *expr);

    if (expr == NULL)
        return false;
    table->expr = expr;
    uint64_t *set = hoop_realloc(table->set, (size_t)room * table->words, sizeof *set);
    if (set == NULL)
        return false;
    table->set = set;
    table->room = room;
    return true;
}

static bool grow_slots(struct expr_table *table, uint32_t slots)
{
    uint32_t *slot = hoop_calloc(slots, sizeof *slot);

    if (slot == NULL)
        return false;
    hoop_free(table->slot);
    table->slot = slot;
    table->slots = slots;
    for (uint32_t i = table->leaves + 1; i < table->used; i++) {
        uint32_t at = hash_pair(table, table->expr[i].left, table->expr[i].right);

        while (slot[at] != 0)
            at = (at + 1) & (slots - 1);
        slot[at] = i;
    }
    return true;
}

bool expr_table_open(struct expr_table *table, uint32_t ranks, bool strict)
{
    *table = (struct expr_table){.leaves = ranks, .words = (ranks + 63) / 64, .strict = strict};
    if (!grow_exprs(table, 4 * ranks + 16) || !grow_slots(table, 64))
        return false;
    memset(table->set, 0, (size_t)(ranks + 1) * table->words * sizeof *table->set);
    table->expr[0] = (struct expr){0};
    for (uint32_t rank = 0; rank < ranks; rank++) {
        table->expr[rank + 1] = (struct expr){.parts = 1, .ordered = rank == 0};
        table->set[(size_t)(rank + 1) * table->words + rank / 64] = (uint64_t)1 << rank % 64;
    }
    table->used = ranks + 1;
    return true;
}

void expr_table_close(struct expr_table *table)
{
    hoop_free(table->expr);
    hoop_free(table->set);
    hoop_free(table->slot);
}

/* The two expressions are disjoint and new together: append them. */
static uint32_t append(struct expr_table *table, uint32_t a, uint32_t b)
{
    const uint32_t words = table->words, made = table->used;

    if (made == table->room && !grow_exprs(table, 2 * table->room))
        return EXPR_NO_MEMORY;
    const struct expr left = table->expr[a], right = table->expr[b];
    struct expr expr = {.left = a, .right = b, .parts = left.parts + right.parts};

    if (left.ordered != 0 && right.parts == 1 && b == left.ordered + 1) /* b is the contribution of that rank */
        expr.ordered = left.ordered + 1;
    else if (!table->strict && right.ordered != 0 && left.parts == 1 && a == right.ordered + 1)
        expr.ordered = right.ordered + 1;
    table->expr[made] = expr;
    for (uint32_t i = 0; i < words; i++)
        table->set[(size_t)made * words + i] = table->set[(size_t)a * words + i] | table->set[(size_t)b * words + i];
    table->used++;
    return made;
}

uint32_t expr_combine(struct expr_table *table, uint32_t a, uint32_t b)
{
    if (a > b && !table->strict) {
        const uint32_t swap = a;

        a = b;
        b = swap;
    }
    uint32_t at = hash_pair(table, a, b);
    for (; table->slot[at] != 0; at = (at + 1) & (table->slots - 1)) {
        const struct expr *expr = &table->expr[table->slot[at]];

        if (expr->left == a && expr->right == b)
            return table->slot[at];
    }
    for (uint32_t i = 0; i < table->words; i++)
        if ((table->set[(size_t)a * table->words + i] & table->set[(size_t)b * table->words + i]) != 0)
            return EXPR_OVERLAP;
    const uint32_t made = append(table, a, b);
    if (made == EXPR_NO_MEMORY)
        return made;
    table->slot[at] = made;
    if (2 * table->used > table->slots && !grow_slots(table, 4 * table->slots))
        return EXPR_NO_MEMORY;
    return made;
}

uint32_t expr_common_rank(const struct expr_table *table, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < table->words; i++) {
        const uint64_t both = table->set[(size_t)a * table->words + i] & table->set[(size_t)b * table->words + i];

        if (both != 0)
            return 64 * i + (uint32_t)__builtin_ctzll(both);
    }
    return 0;
}
