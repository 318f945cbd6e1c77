// SPDX-License-Identifier: BSD-3-Clause
/* The guard: the process that the caller sees. It runs the supervisor as its child in a process group of its own, so
 * that signals of the terminal arrive once, here, and are passed on from here. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_ignored(int signal)
{
    struct sigaction action;

    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void guard_signals(sigset_t *set)
{
    static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

    sigemptyset(set);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++)
        if (!is_ignored(passed_on[i])) /* by nohup, or by a shell that runs us in the background */
            sigaddset(set, passed_on[i]);
    sigaddset(set, SIGCHLD);
}

/* Reap all that has ended. Returns true once the supervisor has, with its wait status. */
static bool reap(pid_t supervisor, int *status)
{
    bool ended = false;
    int one;

    for (pid_t pid; (pid = waitpid(-1, &one, WNOHANG)) > 0;) {
        if (pid == supervisor) {
            *status = one;
            ended = true;
        }
    }
    return ended;
}

static int watch(pid_t supervisor, int signals)
{
    struct signalfd_siginfo info;
    int status = 0;

    for (;;) {
        if (read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
            if (errno == EINTR)
                continue;
            output_error("cannot read signals: %s", strerror(errno));
            kill(supervisor, SIGKILL);
            waitpid(supervisor, &status, 0);
            return status;
        }
        if (info.ssi_signo == SIGCHLD) {
            if (reap(supervisor, &status))
                return status;
            continue;
        }
        kill(supervisor, (int)info.ssi_signo);
        if (info.ssi_signo == SIGTSTP)
            raise(SIGSTOP);
    }
}

static int outcome(int status)
{
    int left;

    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    left = sweep_children(5); /* the supervisor could not */
    output_error("the supervising process was killed by signal %d (%s); its ranks were ended%s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)), left > 0 ? ", but for some that do not die" : "");
    return EXIT_SIGNAL_BASE + WTERMSIG(status);
}

static void drop_stdin(void)
{
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        close(null);
    }
}

int guard_run(const struct options *options)
{
    sigset_t set, old;
    int alive[2], signals;
    pid_t supervisor;

    signal(SIGCHLD, SIG_DFL); /* ignored, it would hide the ends of children */
    guard_signals(&set);
    if (sigprocmask(SIG_BLOCK, &set, &old) != 0 || pipe2(alive, O_CLOEXEC) != 0 ||
        (signals = signalfd(-1, &set, SFD_CLOEXEC)) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 ||
        (supervisor = fork()) < 0) {
        output_error("cannot start: %s", strerror(errno));
        return EXIT_OWN_ERROR;
    }
    if (supervisor == 0) {
        close(alive[1]);
        close(signals);
        setpgid(0, 0);
        exit(supervise(options, alive[0], &old));
    }
    setpgid(supervisor, supervisor);
    close(alive[0]);
    drop_stdin(); /* rank 0 has it */
    return outcome(watch(supervisor, signals));
}
