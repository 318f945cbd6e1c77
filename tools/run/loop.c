// SPDX-License-Identifier: BSD-3-Clause
/* The supervisor: starts the ranks, then one poll loop over signals, outputs and deadlines until all is over.
 *
 * The phases only go forward: run; then a moment to report after a failure, or a longer one after the caller's
 * signal; then SIGTERM; then SIGKILL. */
#include "run.h"

#include <errno.h>
#include <hoop.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REPORT_SECONDS 1.0  /* for the others, after a rank failed */
#define STOP_SECONDS   30.0 /* after the caller's signal */
#define TERM_SECONDS   1.0  /* from SIGTERM to SIGKILL */
#define SWEEP_SECONDS  5.0  /* for processes that do not die though killed */

enum { PENDING_MOST = 64 * 1024 }; /* bytes that wait for a slow reader before ranks are held up */

double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void signal_groups(const struct job *job, int signal)
{
    for (int r = 0; r < job->ranks; r++)
        if (job->rank[r].pid > 0)
            kill(-job->rank[r].pid, signal);
}

static void enter(struct job *job, enum phase phase)
{
    static const double seconds[] = {0, REPORT_SECONDS, STOP_SECONDS, TERM_SECONDS, 0};

    if (phase <= job->phase)
        return;
    job->phase = phase;
    job->phase_deadline = seconds[phase] > 0 ? now_seconds() + seconds[phase] : 0;
    if (phase == PHASE_TERM)
        signal_groups(job, SIGTERM);
    if (phase == PHASE_KILL)
        signal_groups(job, SIGKILL);
}

static void take_end(struct job *job, pid_t pid, int status)
{
    for (int r = 0; r < job->ranks; r++) {
        struct rank *rank = &job->rank[r];

        if (rank->pid != pid)
            continue;
        rank->pid = 0;
        job->running--;
        verdict_record(job, rank, status);
        if (rank->failed && !job->options->survivors)
            enter(job, PHASE_REPORT);
        else if (rank->failed)
            verdict_say(job, rank);
    }
}

static void reap(struct job *job)
{
    int status;

    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        take_end(job, pid, status); /* or an orphan that a rank left to us */
}

static void pass_on(struct job *job, int signal)
{
    switch (signal) {
    case SIGTSTP:
        signal_groups(job, SIGSTOP);
        break;
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
        if (signal == SIGINT && job->stop_signal == SIGINT) {
            output_say(job, "second SIGINT: killing all ranks");
            enter(job, PHASE_KILL);
            break;
        }
        job->stop_signal = signal;
        signal_groups(job, signal);
        enter(job, PHASE_STOPPED);
        break;
    default:
        signal_groups(job, signal);
    }
}

static void take_signals(struct job *job)
{
    struct signalfd_siginfo info;

    while (read(job->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            reap(job);
        else
            pass_on(job, (int)info.ssi_signo);
    }
}

/* "0, 2, 5" for the ranks that still run. */
static void name_running(const struct job *job, char *text, size_t size)
{
    size_t used = 0;

    *text = '\0';
    for (int r = 0; r < job->ranks && used < size; r++)
        if (job->rank[r].pid > 0)
            used += (size_t)snprintf(text + used, size - used, "%s%d", used > 0 ? ", " : "", r);
    if (used >= size)
        memcpy(text + size - 4, "...", 4);
}

static void check_deadlines(struct job *job)
{
    const double now = now_seconds();
    char names[512];

    if (job->deadline > 0 && now >= job->deadline && job->phase < PHASE_TERM && job->running > 0) {
        name_running(job, names, sizeof(names));
        output_say(job, "the job's time of %g s is over; still running: rank%s %s", job->options->timeout,
                   job->running > 1 ? "s" : "", names);
        job->timed_out = true;
        enter(job, PHASE_TERM);
    }
    if (job->phase_deadline > 0 && now >= job->phase_deadline)
        enter(job, job->phase == PHASE_REPORT ? PHASE_TERM : PHASE_KILL);
}

/* Milliseconds until the next deadline, rounded up; -1: none. */
static int patience(const struct job *job)
{
    double next = job->phase_deadline;

    if (job->deadline > 0 && job->phase < PHASE_TERM && (next <= 0 || job->deadline < next))
        next = job->deadline;
    if (next <= 0 || job->running == 0)
        return -1;
    return (int)fmin(fmax(0, ceil((next - now_seconds()) * 1000)), 1e8);
}

/* The descriptors to wait for: signals, guard, both sinks while they hold something, and the streams whose sink has
 * room. A negative descriptor is skipped by poll. */
static void fill_polls(const struct job *job)
{
    struct pollfd *polls = job->polls;

    polls[0] = (struct pollfd){job->signals, POLLIN, 0};
    polls[1] = (struct pollfd){job->guard, POLLIN, 0};
    for (int i = 0; i < 2; i++)
        polls[2 + i] = (struct pollfd){output_pending(&job->sinks[i]) > 0 ? job->sinks[i].fd : -1, POLLOUT, 0};
    for (int i = 0; i < 2 * job->ranks; i++) {
        const struct stream *stream = &job->rank[i / 2].streams[i % 2];
        const bool room = output_pending(stream->sink) < PENDING_MOST;

        polls[4 + i] = (struct pollfd){room ? stream->fd : -1, POLLIN, 0};
    }
}

static bool any_open(const struct job *job)
{
    for (int i = 0; i < 2 * job->ranks; i++)
        if (job->rank[i / 2].streams[i % 2].fd >= 0)
            return true;
    return false;
}

static void guard_is_gone(void)
{
    sweep_children(SWEEP_SECONDS);
    _exit(EXIT_SIGNAL_BASE + SIGKILL); /* nobody is there to see it */
}

static void turn(struct job *job)
{
    const struct pollfd *polls = job->polls;

    fill_polls(job);
    if (poll(job->polls, (nfds_t)(4 + 2 * job->ranks), patience(job)) > 0) {
        if (polls[1].revents != 0)
            guard_is_gone();
        for (int i = 0; i < 2 * job->ranks; i++)
            if (polls[4 + i].revents != 0)
                output_read(job, i / 2, i % 2);
        if (polls[0].revents != 0)
            take_signals(job);
    }
    output_flush(job->out);
    output_flush(job->err);
    check_deadlines(job);
}

/* After the last rank: end what they left, then read the rest of what was written. Pipes of processes that do not
 * even die by SIGKILL are given up. */
static void wind_up(struct job *job)
{
    const int left = sweep_children(SWEEP_SECONDS);

    if (left > 0) {
        output_say(job, "%d process%s of the job do%s not die", left, left > 1 ? "es" : "", left > 1 ? "" : "es");
        for (int i = 0; i < 2 * job->ranks; i++)
            output_close_stream(job, &job->rank[i / 2], &job->rank[i / 2].streams[i % 2]);
    }
    while (any_open(job))
        turn(job);
}

static void flush_all(struct job *job)
{
    struct pollfd waits[3] = {{job->guard, POLLIN, 0}, {job->out->fd, POLLOUT, 0}, {job->err->fd, POLLOUT, 0}};

    for (;;) {
        output_flush(job->out);
        output_flush(job->err);
        waits[1].fd = output_pending(job->out) > 0 ? job->out->fd : -1;
        waits[2].fd = output_pending(job->err) > 0 ? job->err->fd : -1;
        if ((waits[1].fd < 0 && waits[2].fd < 0) || waits[0].revents != 0)
            return;
        poll(waits, 3, -1);
    }
}

static int start_ranks(struct job *job)
{
    struct hoop_unique_id id;
    char text[HOOP_UNIQUE_ID_TEXT];
    int code = 0;

    if (hoop_unique_id_create(&id) != HOOP_OK || hoop_unique_id_print(&id, text, sizeof(text)) != HOOP_OK) {
        output_error("no place for the ranks to meet: %s", hoop_last_error(NULL));
        return EXIT_OWN_ERROR;
    }
    for (int r = 0; r < job->ranks && code == 0; r++)
        code = spawn_rank(job, &job->rank[r], text);
    return code;
}

/* Room for three descriptors a rank, and for both ends while it is started. Ranks get the old limit back. */
static bool raise_file_limit(struct job *job)
{
    const rlim_t wanted = 64 + 3 * (rlim_t)job->ranks;
    struct rlimit raised;

    getrlimit(RLIMIT_NOFILE, &job->old_files);
    raised = job->old_files;
    if (raised.rlim_cur >= wanted)
        return true;
    raised.rlim_cur = raised.rlim_max < wanted ? raised.rlim_max : wanted;
    if (raised.rlim_cur < wanted || setrlimit(RLIMIT_NOFILE, &raised) != 0) {
        output_error("%d ranks need %ld open files, and the limit is %ld (ulimit -Hn)", job->ranks, (long)wanted,
                     (long)job->old_files.rlim_max);
        return false;
    }
    return true;
}

/* What hooprun itself executes: the program, or what starts it on its host. */
static char *find_program(const struct options *options, int *code)
{
    char word[256];

    if (options->hosts == 0)
        return program_find(options->program[0], code);
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(options->rsh, " "), options->rsh);
    return program_find(word, code);
}

/* All that can fail before a rank exists. Returns 0 or the exit code. */
static int prepare(struct job *job)
{
    const struct options *options = job->options;
    sigset_t set;
    int code = EXIT_OWN_ERROR;

    guard_signals(&set);
    job->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (job->signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
        output_error("cannot start: %s", strerror(errno));
        return EXIT_OWN_ERROR;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTTOU, SIG_IGN); /* the terminal belongs to the guard's group, and we write to it */
    if (options->hosts && !hosts_meet())
        return EXIT_OWN_ERROR;
    if ((job->path = find_program(options, &code)) == NULL)
        return code;
    if (!raise_file_limit(job) || !output_open(job))
        return EXIT_OWN_ERROR;
    if (options->bind_core && (job->bindings = bind_cores(job->ranks)) == NULL)
        return EXIT_OWN_ERROR;
    return 0;
}

static bool job_open(struct job *job, const struct options *options)
{
    job->options = options;
    job->ranks = options->ranks;
    job->rank = calloc((size_t)options->ranks, sizeof(*job->rank));
    job->polls = calloc((size_t)(4 + 2 * options->ranks), sizeof(*job->polls));
    if (job->rank == NULL || job->polls == NULL) {
        output_error("no memory for %d ranks", options->ranks);
        return false;
    }
    for (int r = 0; r < job->ranks; r++)
        job->rank[r].number = r;
    job->started = now_seconds();
    job->deadline = options->timeout > 0 ? job->started + options->timeout : 0;
    return true;
}

static void job_close(struct job *job)
{
    output_close(job);
    free(job->polls);
    free(job->rank);
    free(job->bindings);
    free(job->path);
}

/* Start all ranks and see them end. Returns the job's exit code; *over: a further try could not help. */
static int try_once(struct job *job, bool *over)
{
    int code = start_ranks(job);

    *over = code != 0;
    if (*over) {
        sweep_children(SWEEP_SECONDS);
        return code;
    }
    while (job->running > 0)
        turn(job);
    wind_up(job);
    flush_all(job);
    code = verdict_give(job);
    take_signals(job);
    *over = code == 0 || job->timed_out || job->stop_signal != 0 || job->restart >= job->options->restarts;
    return code;
}

static int run_job(struct job *job)
{
    int code = prepare(job);
    bool over = code != 0;

    while (!over) {
        code = try_once(job, &over);
        if (!over) {
            job->restart++;
            job->phase = PHASE_RUN;
            job->phase_deadline = 0;
            verdict_forget(job);
            output_say(job, "restart %d of %d: starting all ranks again", job->restart, job->options->restarts);
        }
        flush_all(job);
    }
    return code;
}

int supervise(const struct options *options, int guard, const sigset_t *mask)
{
    struct job job = {.guard = guard, .old_mask = *mask};
    const int code = job_open(&job, options) ? run_job(&job) : EXIT_OWN_ERROR;

    job_close(&job);
    return code;
}
