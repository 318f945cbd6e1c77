// SPDX-License-Identifier: BSD-3-Clause
/* hoop-train: data-parallel training of an image classifier, on the public interface of the library alone. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fail.h"
#include "signals.h"
#include "trainer.h"

/* Whether the training loop came to a regular end, so that its results are worth writing. */
static bool has_results(int code, const struct trainer *trainer)
{
    return code == TRAIN_OK || code == TRAIN_INTERRUPT || code == TRAIN_TERMINATE ||
           (code == TRAIN_DIVERGED && trainer->step > 0);
}

static int train(const struct options *options, struct hoop_comm *comm)
{
    static struct trainer trainer; /* too large for a stack */
    struct summary summary;
    int code = trainer_setup(&trainer, options, comm);

    if (code == TRAIN_OK) {
        code = trainer_loop(&trainer);
        if (has_results(code, &trainer)) {
            trainer_summary(&trainer, &summary, code);
            const int written = report_end(&trainer.report, &summary);
            if (code == TRAIN_OK)
                code = written;
        }
    }
    if (code != TRAIN_OK && train_fail_is_untold())
        hoop_comm_abort(comm); /* the others would wait for this rank */
    trainer_free(&trainer);
    return code;
}

static void complain(int rank)
{
    if (!train_fail_is_mine(rank))
        return;
    if (rank >= 0)
        fprintf(stderr, "hoop-train: rank %d: %s\n", rank, train_fail_text());
    else
        fprintf(stderr, "hoop-train: %s\n", train_fail_text());
}

int main(int count, char **words)
{
    struct options options;
    struct hoop_comm *comm = NULL;

    options_parse(&options, count, words);
    const enum hoop_status joined = hoop_comm_init_env(&comm);
    if (joined != HOOP_OK) {
        const int code = train_fail_call(joined, NULL, "joining the other ranks");
        complain(-1);
        return code;
    }
    signals_catch();
    const int rank = hoop_comm_rank(comm);
    int code = train(&options, comm);
    complain(rank);
    const enum hoop_status parted = hoop_comm_destroy(comm);
    if (parted != HOOP_OK && code == TRAIN_OK) {
        code = train_fail_call(parted, NULL, "parting from the other ranks");
        complain(rank);
    }
    return code;
}
