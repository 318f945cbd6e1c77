// SPDX-License-Identifier: BSD-3-Clause
/* Lines of the ranks to the caller, and to the log files.
 *
 * A rank's bytes gather in its stream until a line is whole; then prefix and line go to a sink, a queue in front of
 * standard output or error. A sink is written only when poll says that it takes a page, so a reader that has
 * paused costs its ranks their progress (their pipes fill up) but never hooprun its attention. If both outputs are
 * one file they share one sink, or lines could be torn at the joints.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_FIRST = 4096,     /* bytes of a stream's buffer at first */
    LINE_MOST = 64 * 1024, /* longer lines are shown in parts */
    WRITE_MOST = 4096,     /* what a pipe that poll calls writable takes without blocking */
};

void output_error(const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "hooprun: %s\n", text);
}

static void append(struct sink *sink, const char *text, size_t length)
{
    if (sink->broken)
        return;
    if (sink->used + length > sink->capacity) {
        const size_t wanted = 2 * (sink->used - sink->start + length) + LINE_FIRST;
        char *data = malloc(wanted);

        if (data == NULL)
            return; /* the text is lost, the job goes on */
        sink->used -= sink->start;
        if (sink->used > 0)
            memcpy(data, sink->data + sink->start, sink->used);
        free(sink->data);
        sink->data = data;
        sink->start = 0;
        sink->capacity = wanted;
    }
    memcpy(sink->data + sink->used, text, length);
    sink->used += length;
}

static void append_string(struct sink *sink, const char *text)
{
    append(sink, text, strlen(text));
}

void output_say(struct job *job, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (job->err->overwrite)
        append_string(job->err, "\033[K");
    job->err->overwrite = false;
    append_string(job->err, "hooprun: ");
    append_string(job->err, text);
    append_string(job->err, "\n");
}

size_t output_pending(const struct sink *sink)
{
    return sink->used - sink->start;
}

/* As much of the queue as one write may take, up to the end of a line where there is one. */
static size_t portion(const struct sink *sink)
{
    const size_t most = output_pending(sink) < WRITE_MOST ? output_pending(sink) : WRITE_MOST;
    const char *newline = memrchr(sink->data + sink->start, '\n', most);

    return newline != NULL ? (size_t)(newline + 1 - (sink->data + sink->start)) : most;
}

void output_flush(struct sink *sink)
{
    while (output_pending(sink) > 0) {
        struct pollfd poll_fd = {sink->fd, POLLOUT, 0};
        ssize_t written;

        if (poll(&poll_fd, 1, 0) <= 0)
            return;
        written = write(sink->fd, sink->data + sink->start, portion(sink));
        if (written < 0 && (errno == EINTR || errno == EAGAIN))
            return;
        if (written < 0) { /* nobody reads any more: ranks shall notice, see output_read */
            sink->broken = true;
            sink->start = sink->used = 0;
            return;
        }
        sink->start += (size_t)written;
    }
    sink->start = sink->used = 0;
}

/* One line, or a part of one. ending: '\n', '\r', or 0 for a part that goes on. */
static void show(struct job *job, const struct rank *rank, struct stream *stream, size_t length, char ending)
{
    struct sink *sink = stream->sink;

    if (job->options->quiet)
        return;
    if (sink->overwrite)
        append_string(sink, "\033[K");
    if (job->options->prefix) {
        char prefix[32];

        append(sink, prefix, (size_t)snprintf(prefix, sizeof(prefix), "[%d] ", rank->number));
        if (stream->continued)
            append_string(sink, "...");
    }
    append(sink, stream->data + stream->start, length);
    if (ending == 0 && job->options->prefix)
        append_string(sink, "...\n");
    else if (ending != 0)
        append(sink, &ending, 1);
    sink->overwrite = ending == '\r';
}

static void log_bytes(struct job *job, struct rank *rank, const char *text, size_t length)
{
    while (length > 0 && rank->log >= 0) {
        const ssize_t written = write(rank->log, text, length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            output_say(job, "rank %d: its log ends here: %s", rank->number, strerror(errno));
            close(rank->log);
            rank->log = -1;
            return;
        }
        text += written;
        length -= (size_t)written;
    }
}

/* The first end of a line in the buffer: its length with the end, or 0. A carriage return ends one only on a terminal,
 * where it is how progress is shown. */
static size_t line_length(const struct stream *stream, size_t *text_length, char *ending)
{
    const char *text = stream->data + stream->start;
    const size_t length = stream->used - stream->start;
    const char *newline = memchr(text, '\n', length);
    const size_t limit = newline != NULL ? (size_t)(newline - text) : length;
    const char *carriage = stream->sink->terminal ? memchr(text, '\r', limit) : NULL;

    if (carriage != NULL && (newline == NULL || carriage + 1 < newline)) {
        *text_length = (size_t)(carriage - text);
        *ending = '\r';
        return *text_length + 1;
    }
    *text_length = limit;
    *ending = '\n';
    return newline != NULL ? limit + 1 : 0;
}

/* Show and log what begins at start: text bytes, whole bytes with the line's end. */
static void take(struct job *job, struct rank *rank, struct stream *stream, size_t text, size_t whole, char ending)
{
    log_bytes(job, rank, stream->data + stream->start, whole);
    if (ending != '\r' || text > 0)
        show(job, rank, stream, text, ending);
    stream->continued = ending == 0;
    stream->start += whole;
}

static void take_lines(struct job *job, struct rank *rank, struct stream *stream)
{
    size_t text, whole;
    char ending;

    while (stream->start < stream->used && (whole = line_length(stream, &text, &ending)) > 0)
        take(job, rank, stream, text, whole, ending);
    stream->used -= stream->start;
    memmove(stream->data, stream->data + stream->start, stream->used);
    stream->start = 0;
}

static bool make_room(struct stream *stream)
{
    const size_t capacity = stream->capacity == 0 ? LINE_FIRST : 2 * stream->capacity;
    char *data;

    if (stream->used < stream->capacity)
        return true;
    if (capacity > LINE_MOST || (data = realloc(stream->data, capacity)) == NULL)
        return false;
    stream->data = data;
    stream->capacity = capacity;
    return true;
}

void output_close_stream(struct job *job, struct rank *rank, struct stream *stream)
{
    if (stream->used > 0)
        take(job, rank, stream, stream->used, stream->used, '\n');
    if (stream->fd >= 0)
        close(stream->fd);
    free(stream->data);
    *stream = (struct stream){.fd = -1, .sink = stream->sink};
}

void output_read(struct job *job, int number, int which)
{
    struct rank *rank = &job->rank[number];
    struct stream *stream = &rank->streams[which];
    ssize_t got;

    if (!make_room(stream)) { /* a line too long: show what there is */
        take(job, rank, stream, stream->used, stream->used, 0);
        stream->start = stream->used = 0;
    }
    if (stream->capacity == 0)
        return; /* no memory: try again at the next poll */
    got = read(stream->fd, stream->data + stream->used, stream->capacity - stream->used);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0 || (stream->sink->broken && rank->log < 0)) { /* closing gives a writer without a reader SIGPIPE */
        output_close_stream(job, rank, stream);
        return;
    }
    stream->used += (size_t)got;
    take_lines(job, rank, stream);
}

static bool same_file(int a, int b)
{
    struct stat first, second;

    return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static bool open_logs(struct job *job)
{
    const char *directory = job->options->log_directory;

    if (mkdir(directory, 0777) != 0 && errno != EEXIST) {
        output_error("--log-dir %s: cannot be made: %s", directory, strerror(errno));
        return false;
    }
    for (int rank = 0; rank < job->ranks; rank++) {
        char path[4096];

        snprintf(path, sizeof(path), "%s/rank-%d.log", directory, rank);
        job->rank[rank].log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (job->rank[rank].log < 0) {
            output_error("--log-dir: %s cannot be written: %s", path, strerror(errno));
            return false;
        }
    }
    return true;
}

bool output_open(struct job *job)
{
    job->sinks[0] = (struct sink){.fd = STDOUT_FILENO, .terminal = isatty(STDOUT_FILENO)};
    job->sinks[1] = (struct sink){.fd = STDERR_FILENO, .terminal = isatty(STDERR_FILENO)};
    job->out = &job->sinks[0];
    job->err = same_file(STDOUT_FILENO, STDERR_FILENO) ? job->out : &job->sinks[1];
    for (int rank = 0; rank < job->ranks; rank++) {
        job->rank[rank].log = -1;
        job->rank[rank].streams[0] = (struct stream){.fd = -1, .sink = job->out};
        job->rank[rank].streams[1] = (struct stream){.fd = -1, .sink = job->err};
    }
    return job->options->log_directory == NULL || open_logs(job);
}

void output_close(struct job *job)
{
    for (int i = 0; i < 2; i++) {
        free(job->sinks[i].data);
        job->sinks[i] = (struct sink){.fd = -1};
    }
    for (int r = 0; job->rank != NULL && job->err != NULL && r < job->ranks; r++) {
        for (int i = 0; i < 2; i++) {
            struct stream *stream = &job->rank[r].streams[i];

            if (stream->fd >= 0)
                close(stream->fd);
            free(stream->data);
        }
        if (job->rank[r].log >= 0)
            close(job->rank[r].log);
    }
}
