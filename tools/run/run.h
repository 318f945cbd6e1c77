// SPDX-License-Identifier: BSD-3-Clause
/* hooprun: start the ranks of a job, show what they print, and leave nothing behind.
 *
 * hooprun is two processes. The guard is the one that the caller knows: it passes signals on and exits with the
 * job's code. Its only child, the supervisor, starts the ranks and runs the loop. Each can clean up after a sudden
 * death of the other: both are subreapers, so whatever a rank leaves behind, daemons included, becomes a child of
 * the supervisor, or of the guard if the supervisor is gone, and is ended there (sweep.c); and the supervisor
 * sees the guard's death as the end of a pipe.
 *
 *     options.c   command line                 guard.c     the outer process
 *     program.c   path and environment         spawn.c     one rank: pipes, group, binding, exec
 *     bind.c      cores for ranks              output.c    lines, prefixes, log files, slow readers
 *     loop.c      poll, signals, deadlines     verdict.c   which rank was the cause, and the exit code
 *     hosts.c     ranks on other hosts
 */
#ifndef HOOP_TOOLS_RUN_H
#define HOOP_TOOLS_RUN_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

enum {
    EXIT_TIMED_OUT = 124,   /* as timeout(1) */
    EXIT_CANNOT_RUN = 126,  /* as a shell: found, but cannot be executed */
    EXIT_NOT_FOUND = 127,   /* as a shell */
    EXIT_OWN_ERROR = 125,   /* hooprun itself could not do its work */
    EXIT_SIGNAL_BASE = 128, /* plus the signal's number */
    MOST_RANKS = 4096
};

/* An entry of --hosts. */
struct host {
    char *name;
    int ranks, first; /* first: the number of its first rank */
};

struct options {
    int ranks; /* 0: not given, as long as the options are read */
    struct host *host;
    int hosts, host_ranks; /* 0: all ranks on this host */
    const char *rsh;
    bool bind_core, prefix, quiet;
    double timeout; /* seconds; 0: none */
    int restarts;   /* most */
    bool survivors; /* go on without ranks that fail */
    const char *log_directory;
    char **program; /* arguments, NULL at the end; [0] as the user wrote it */
};

/* Where lines go: a queue, so that a reader who does not read holds up neither signals nor deadlines. */
struct sink {
    int fd;
    char *data;
    size_t start, used, capacity; /* bytes from start to used wait to be written */
    bool terminal, broken;        /* broken: the reader is gone */
    bool overwrite;               /* the last text ended in a carriage return: clear the line before the next */
};

/* One of a rank's two outputs, and the bytes of its unfinished line. */
struct stream {
    int fd; /* -1: closed */
    struct sink *sink;
    char *data;
    size_t start, used, capacity; /* start: what is before it was shown; 0 between reads */
    bool continued;               /* the line began in a part that was already shown */
};

struct rank {
    pid_t pid; /* 0: not started, or ended */
    int number, log;
    struct stream streams[2];
    /* After the end: */
    pid_t last_pid;
    bool failed, by_job; /* by_job: ended by the TERM or KILL of hooprun, so not a cause */
    int code, signal;    /* signal 0: exited with code */
    int order;           /* 0: the first that failed, 1: the second, … */
};

enum phase {
    PHASE_RUN,     /* as long as it takes */
    PHASE_REPORT,  /* a rank failed: the others have a moment to say what they saw */
    PHASE_STOPPED, /* the caller's signal was passed on: they have longer */
    PHASE_TERM,    /* SIGTERM was sent */
    PHASE_KILL     /* SIGKILL was sent */
};

struct job {
    const struct options *options;
    int ranks, running, failures;
    int restart; /* 0: the first try */
    struct rank *rank;
    struct sink sinks[2], *out, *err; /* err == out if both are the same file */
    int signals, guard;               /* signalfd; the end of a pipe that closes when the guard dies */
    enum phase phase;
    double started, deadline, phase_deadline; /* CLOCK_MONOTONIC seconds; 0: none */
    int stop_signal;                          /* the caller's signal that was passed on, or 0 */
    bool timed_out;
    sigset_t old_mask; /* what ranks get back */
    struct rlimit old_files;
    char *path;
    struct pollfd *polls;     /* for the loop */
    cpu_set_t (*bindings)[8]; /* one set a rank, or NULL */
};

/* options.c: exits on wrong usage. */
void options_parse(struct options *options, int argc, char **argv);

/* guard.c: run supervise(options, alive fd, mask) in a child; returns the job's exit code. */
int guard_run(const struct options *options);
/* The signals that are passed on (but for those that the caller had ignored), and SIGCHLD. */
void guard_signals(sigset_t *set);

/* loop.c: the supervisor. guard: see struct job; mask: the signal mask for the ranks. */
int supervise(const struct options *options, int guard, const sigset_t *mask);
double now_seconds(void);

/* program.c: the path of the program, malloc'd; NULL: *code says 126 or 127, and a message was printed. */
char *program_find(const char *name, int *code);
/* The environment of a rank: ours without what hooprun sets, then that. malloc'd as one block; NULL: no memory. */
char **program_environment(const struct job *job, int rank, const char *id);

/* hosts.c: read the list of --hosts; NULL, or what is wrong with it. */
const char *hosts_parse(struct options *options, const char *text);
/* The entry of a rank. */
const struct host *hosts_of(const struct options *options, int rank);
/* Does --rsh take a line for a shell, and the id as its first line of input? */
bool hosts_by_shell(const struct options *options);
/* The command that starts a rank on its host; malloc'd as one block; NULL: no memory. */
char **hosts_command(const struct options *options, int rank, char *const *environment);
/* See that the ranks' meeting can be reached from other hosts; false: printed. */
bool hosts_meet(void);

/* bind.c: whole cores for each rank, in blocks; with more ranks than cores they share. NULL: cannot (printed). */
cpu_set_t (*bind_cores(int ranks))[8];

/* spawn.c: 0, or the exit code of hooprun if the rank cannot be started (printed). */
int spawn_rank(struct job *job, struct rank *rank, const char *id);

/* output.c */
bool output_open(struct job *job);  /* sinks and log files; false: printed */
void output_close(struct job *job); /* frees; what was not read or written is lost */
void output_read(struct job *job, int rank, int which);
void output_flush(struct sink *sink);           /* write what can be written without waiting */
size_t output_pending(const struct sink *sink); /* bytes */
void output_close_stream(struct job *job, struct rank *rank, struct stream *stream);
void output_say(struct job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line that fits no queue: straight to stderr, for errors before the loop runs. */
void output_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* sweep.c: kill every child of this process, and the children that become ours by that, and reap them.
 * Waits at most seconds. Returns how many would not die. */
int sweep_children(double seconds);

/* verdict.c */
void verdict_record(struct job *job, struct rank *rank, int wait_status);
int verdict_give(struct job *job); /* says what the cause was; returns the exit code */
void verdict_say(struct job *job, const struct rank *cause);
/* Forget how the ranks ended. */
void verdict_forget(struct job *job);

#endif
