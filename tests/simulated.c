// SPDX-License-Identifier: BSD-3-Clause
#include "simulated.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/host.h"
#include "transports/transports.h"

enum { LANES = 16, GUARD = 64 };

struct rank {
    struct hoop_plan *plan;
    struct hoop_binding binding;
    struct hoop_domain *domain;
    struct hoop_link *link[SIMULATED_MOST * LANES];
    struct hoop_exec *exec;
    unsigned char *in, *out, *tmp, *block;
};

static void open_rank(struct rank *r, struct hoop_sim *sim, int rank, int ranks, size_t frame)
{
    const struct hoop_domain_setup setup = {
        .rank = rank, .ranks = ranks, .lanes = LANES, .frame = frame, .slots = 2, .context = sim};

    memset(r, 0, sizeof *r);
    ck_assert_int_eq(hoop_transport_sim.open(&setup, &r->domain), HOOP_OK);
    ck_assert_int_eq(hoop_exec_new(&r->exec), HOOP_OK);
}

static void connect_plan(struct rank *all, struct rank *r)
{
    for (uint32_t l = 0; l < r->plan->lanes; l++)
        for (uint32_t s = 0; s < r->plan->lane[l].steps; s++) {
            const struct hoop_step *step = &r->plan->lane[l].step[s];
            if (step->kind < HOOP_STEP_SEND || step->kind > HOOP_STEP_RECV_REDUCE ||
                r->link[step->peer * LANES + (int)l])
                continue;
            unsigned char blob[HOOP_ADDRESS_MAX];
            size_t size = sizeof blob;
            ck_assert_int_eq(hoop_transport_sim.address(all[step->peer].domain, blob, &size), HOOP_OK);
            ck_assert_int_eq(hoop_transport_sim.connect(r->domain, step->peer, (int)l, blob, size,
                                                        &r->link[step->peer * LANES + (int)l]),
                             HOOP_OK);
        }
}

static void close_rank(struct rank *r)
{
    for (int i = 0; i < SIMULATED_MOST * LANES; i++)
        if (r->link[i])
            r->domain->transport->disconnect(r->link[i]);
    r->domain->transport->close(r->domain);
    hoop_exec_free(r->exec);
}

static void start_rank(struct rank *all, const struct hoop_case *c, const struct simulated *how, int rank)
{
    const struct hoop_algo *algo = how->algo;
    struct rank *r = &all[rank];
    const bool rooted = case_rooted(c);
    const bool in_place = c->in_place && (!rooted || rank == c->root);
    const struct hoop_problem problem = {.coll = c->coll,
                                         .ranks = c->ranks,
                                         .rank = rank,
                                         .root = c->root,
                                         .in_place = in_place,
                                         .channels = how->channels,
                                         .groups = how->groups};
    const size_t in_bytes = case_in_bytes(c), out_bytes = case_out_bytes(c),
                 larger = in_bytes > out_bytes ? in_bytes : out_bytes;

    ck_assert_msg(hoop_plan_build(&r->plan, algo, &problem, true) == HOOP_OK, "%s: %s", algo->name,
                  hoop_last_error(NULL));
    ck_assert_int_eq(hoop_bind(&r->binding, r->plan, c->count, hoop_type_size(c->type), how->frame, 1), HOOP_OK);
    connect_plan(all, r);
    r->block = malloc(2 * larger + GUARD);
    memset(r->block, 0xa5, 2 * larger + GUARD);
    r->tmp = malloc(r->binding.tmp_bytes + 1);
    r->in = r->block + (in_place ? case_in_offset(c, rank) : 0);
    r->out = in_place ? r->block + case_out_offset(c, rank) : r->block + larger;
    if (case_gives(c, rank))
        how->give(c, rank, r->in, how->data);
    const struct hoop_exec_call call = {.plan = r->plan,
                                        .binding = &r->binding,
                                        .domain = r->domain,
                                        .links = r->link,
                                        .lanes = LANES,
                                        .type = c->type,
                                        .op = c->op,
                                        .in = case_gives(c, rank) ? r->in : NULL,
                                        .out = case_gets(c, rank) ? r->out : NULL,
                                        .tmp = r->tmp,
                                        .tag = 42,
                                        .out_shared = c->count % 2 == 1};
    ck_assert_int_eq(hoop_exec_start(r->exec, &call), HOOP_OK);
}

static void drive(struct rank *r, const struct hoop_case *c, const struct hoop_algo *algo, struct hoop_sim *sim)
{
    bool done[SIMULATED_MOST] = {false};
    int left = c->ranks,
        still = 0; /* rounds in which nothing happened; a frame may arrive at the end of such a round */
    char words[160];

    case_text(c, words, sizeof words);
    while (left > 0) {
        bool any = false;
        for (int rank = 0; rank < c->ranks; rank++) {
            bool moved = false;
            if (done[rank])
                continue;
            const enum hoop_status status = hoop_exec_poll(r[rank].exec, &moved);
            ck_assert_msg(status >= HOOP_OK, "algo=%s %s: rank %d: %s", algo->name, words, rank, hoop_last_error(NULL));
            done[rank] = status == HOOP_OK;
            left -= done[rank];
            any |= moved || done[rank];
        }
        still = any || hoop_sim_advance(sim) ? 0 : still + 1;
        ck_assert_msg(still < 3 || left == 0, "algo=%s %s: all wait", algo->name, words);
    }
}

void simulated_run(const struct hoop_case *c, const struct simulated *how)
{
    struct rank r[SIMULATED_MOST];
    struct hoop_sim *sim;

    ck_assert_int_eq(hoop_sim_create(&sim, c->ranks, how->config), HOOP_OK);
    for (int rank = 0; rank < c->ranks; rank++)
        open_rank(&r[rank], sim, rank, c->ranks, how->frame);
    for (int rank = 0; rank < c->ranks; rank++)
        start_rank(r, c, how, rank);
    drive(r, c, how->algo, sim);
    for (int rank = 0; rank < c->ranks; rank++) {
        if (case_gets(c, rank))
            how->take(c, rank, r[rank].out, how->data);
        hoop_plan_free(r[rank].plan);
        free(r[rank].block);
        free(r[rank].tmp);
        close_rank(&r[rank]);
    }
    hoop_sim_destroy(sim);
}
