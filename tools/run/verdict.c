// SPDX-License-Identifier: BSD-3-Clause
/* Which rank was the cause. A rank that a signal killed outranks those that exited with an error, since their errors
 * usually follow from its death though they may be seen first; among equals the first one counts. What hooprun's own
 * signals ended is no cause. */
#include "run.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static bool ended_by_job(const struct job *job, int signal)
{
    return (signal == SIGTERM && job->phase >= PHASE_TERM) || (signal == SIGKILL && job->phase == PHASE_KILL);
}

void verdict_record(struct job *job, struct rank *rank, int wait_status)
{
    rank->signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
    rank->code = rank->signal != 0 ? EXIT_SIGNAL_BASE + rank->signal : WEXITSTATUS(wait_status);
    rank->failed = rank->code != 0;
    /* after SIGTERM a rank may also end by an exit code of its choice */
    rank->by_job = ended_by_job(job, rank->signal) || (rank->signal == 0 && job->phase >= PHASE_TERM);
    if (rank->failed)
        rank->order = job->failures++;
}

static bool outranks(const struct rank *a, const struct rank *b)
{
    if (b == NULL)
        return true;
    if ((a->signal != 0) != (b->signal != 0))
        return a->signal != 0;
    return a->order < b->order;
}

static const struct rank *cause_of(const struct job *job)
{
    const struct rank *cause = NULL;

    for (int r = 0; r < job->ranks; r++) {
        const struct rank *rank = &job->rank[r];

        if (rank->failed && !rank->by_job && outranks(rank, cause))
            cause = rank;
    }
    return cause;
}

void verdict_say(struct job *job, const struct rank *cause)
{
    const double seconds = now_seconds() - job->started;
    const int others = job->failures - 1;
    const char *took = job->options->survivors ? "after" : "the job took";
    char rest[80] = "";

    if (job->options->survivors)
        snprintf(rest, sizeof(rest), "; %d of %d ranks go on", job->running, job->ranks);
    else if (others > 0)
        snprintf(rest, sizeof(rest), "; %d other rank%s failed or %s ended too", others, others > 1 ? "s" : "",
                 others > 1 ? "were" : "was");
    if (cause->signal != 0)
        output_say(job, "rank %d (pid %d) was killed by signal %d (%s); %s %.1f s%s", cause->number,
                   (int)cause->last_pid, cause->signal, strsignal(cause->signal), took, seconds, rest);
    else
        output_say(job, "rank %d (pid %d) exited with code %d; %s %.1f s%s", cause->number, (int)cause->last_pid,
                   cause->code, took, seconds, rest);
}

void verdict_forget(struct job *job)
{
    for (int r = 0; r < job->ranks; r++) {
        struct rank *rank = &job->rank[r];

        rank->failed = rank->by_job = false;
        rank->code = rank->signal = rank->order = 0;
    }
    job->failures = 0;
}

int verdict_give(struct job *job)
{
    const struct rank *cause = cause_of(job);

    if (job->timed_out)
        return EXIT_TIMED_OUT; /* the loop has said who still ran */
    if (job->options->survivors && cause != NULL && job->stop_signal == 0)
        return job->failures < job->ranks ? 0 : cause->code; /* each has been told */
    if (cause != NULL) {
        verdict_say(job, cause);
        return cause->code;
    }
    if (job->failures > 0) { /* all ended by SIGKILL after the caller's signal */
        output_say(job, "%d rank%s had to be killed after signal %d (%s)", job->failures, job->failures > 1 ? "s" : "",
                   job->stop_signal, strsignal(job->stop_signal));
        return EXIT_SIGNAL_BASE + job->stop_signal;
    }
    return 0;
}
