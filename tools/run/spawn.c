// SPDX-License-Identifier: BSD-3-Clause
/* Start one rank: two pipes for its output, a process group of its own, and a third pipe that closes by exec or
 * brings the error of what failed before it. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child reports when it cannot run the program. */
struct failure {
    int error, at;
};

enum { AT_FILES, AT_BIND, AT_EXEC };

static const char *const failed_step[] = {"cannot set up its files", "cannot bind it to its cores", "cannot run"};

struct launch {
    const struct job *job;
    char **environment, **command;
    pid_t parent;
    int number, outputs[2][2], report[2], input[2]; /* input: where the id comes from; -1: from the environment */
};

static void fail(const struct launch *launch, int at)
{
    const struct failure failure = {errno, at};

    while (write(launch->report[1], &failure, sizeof(failure)) < 0 && errno == EINTR)
        ;
    _exit(EXIT_OWN_ERROR);
}

static bool place_files(const struct launch *launch)
{
    if (launch->input[0] >= 0) {
        if (dup2(launch->input[0], STDIN_FILENO) < 0)
            return false;
    } else if (launch->number > 0 || isatty(STDIN_FILENO)) {
        const int null = open("/dev/null", O_RDONLY);

        if (null < 0 || dup2(null, STDIN_FILENO) < 0)
            return false;
        if (null != STDIN_FILENO)
            close(null);
    }
    return dup2(launch->outputs[0][1], STDOUT_FILENO) >= 0 && dup2(launch->outputs[1][1], STDERR_FILENO) >= 0;
}

/* Between fork and exec: only calls that are safe while other threads exist. */
_Noreturn static void become_rank(const struct launch *launch)
{
    const struct job *job = launch->job;
    const int number = launch->number;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != launch->parent)
        _exit(EXIT_OWN_ERROR); /* it died before the line above */
    if (!place_files(launch))
        fail(launch, AT_FILES);
    if (job->bindings != NULL && sched_setaffinity(0, sizeof(job->bindings[0]), job->bindings[number]) != 0)
        fail(launch, AT_BIND);
    setrlimit(RLIMIT_NOFILE, &job->old_files);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &job->old_mask, NULL);
    execve(job->path, launch->command, launch->environment);
    fail(launch, AT_EXEC);
    _exit(EXIT_OWN_ERROR); /* not reached */
}

/* Wait for exec. Returns 0, or hooprun's exit code. */
static int hear(const struct launch *launch)
{
    struct failure failure;
    ssize_t got;

    while ((got = read(launch->report[0], &failure, sizeof(failure))) < 0 && errno == EINTR)
        ;
    if (got != (ssize_t)sizeof(failure))
        return 0;
    output_error("rank %d: %s %s: %s", launch->number, failed_step[failure.at], launch->job->path,
                 strerror(failure.error));
    if (failure.at != AT_EXEC)
        return EXIT_OWN_ERROR;
    return failure.error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

static void close_pair(int *pair, int keep)
{
    for (int i = 0; i < 2; i++)
        if (i != keep && pair[i] >= 0)
            close(pair[i]);
}

static bool open_pipes(struct launch *launch)
{
    return pipe2(launch->outputs[0], O_CLOEXEC) == 0 && pipe2(launch->outputs[1], O_CLOEXEC) == 0 &&
           pipe2(launch->report, O_CLOEXEC) == 0 && fcntl(launch->outputs[0][0], F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(launch->outputs[1][0], F_SETFL, O_NONBLOCK) == 0;
}

/* What is run, and for a shell elsewhere the id on its input. */
static bool make_command(struct launch *launch, const char *id)
{
    const struct options *options = launch->job->options;

    launch->command = options->hosts ? hosts_command(options, launch->number, launch->environment) : options->program;
    if (launch->command == NULL || !options->hosts || !hosts_by_shell(options))
        return launch->command != NULL;
    return pipe2(launch->input, O_CLOEXEC) == 0 && write(launch->input[1], id, strlen(id)) > 0 &&
           write(launch->input[1], "\n", 1) == 1; /* shorter than what a pipe holds */
}

int spawn_rank(struct job *job, struct rank *rank, const char *id)
{
    struct launch launch = {job, NULL, NULL, getpid(), rank->number, {{-1, -1}, {-1, -1}}, {-1, -1}, {-1, -1}};
    int keep = -1, code = EXIT_OWN_ERROR;

    launch.environment = program_environment(job, rank->number, id);
    if (launch.environment == NULL || !make_command(&launch, id) || !open_pipes(&launch) || (rank->pid = fork()) < 0) {
        output_error("rank %d: cannot be started: %s", rank->number, strerror(errno));
        rank->pid = 0;
        goto out;
    }
    if (rank->pid == 0)
        become_rank(&launch);
    setpgid(rank->pid, rank->pid); /* whoever is first */
    rank->last_pid = rank->pid;
    keep = 0;
    close(launch.report[1]);
    launch.report[1] = -1;
    rank->streams[0].fd = launch.outputs[0][0];
    rank->streams[1].fd = launch.outputs[1][0];
    code = hear(&launch);
    if (code == 0)
        job->running++;
out:
    close_pair(launch.report, -1);
    close_pair(launch.input, -1);
    close_pair(launch.outputs[0], keep);
    close_pair(launch.outputs[1], keep);
    free(launch.environment);
    if (job->options->hosts)
        free(launch.command);
    return code;
}
