// SPDX-License-Identifier: BSD-3-Clause
/* See report.h. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fail.h"
#include "json.h"
#include "trainer.h"

enum { BAR_WIDTH = 30 };

/* Make a folder and those above it that are missing. */
static int make_folder(const char *path)
{
    char part[4096];

    if (strlen(path) >= sizeof part)
        return train_fail(TRAIN_USAGE, "--out: the name %.60s... is too long", path);
    for (size_t i = 1; i <= strlen(path); i++)
        if (path[i] == '/' || path[i] == '\0') {
            memcpy(part, path, i);
            part[i] = '\0';
            if (mkdir(part, 0777) != 0 && errno != EEXIST)
                return train_fail(TRAIN_USAGE, "--out: cannot make the folder %s: %s", part, strerror(errno));
        }
    return TRAIN_OK;
}

static int path_of(const struct report *report, const char *name, char *path, size_t size)
{
    if ((size_t)snprintf(path, size, "%s/%s", report->options->out, name) >= size)
        return train_fail(TRAIN_USAGE, "--out: the name %.60s... is too long", report->options->out);
    return TRAIN_OK;
}

int report_open(struct report *report, const struct options *options, int rank, int ranks)
{
    char path[4096 + 32];

    *report = (struct report){.options = options, .ranks = ranks, .active = rank == 0};
    if (!report->active)
        return TRAIN_OK;
    setvbuf(stdout, NULL, _IOLBF, 0);
    report->bar = isatty(STDERR_FILENO) && !options->json;
    int code = make_folder(options->out);
    if (code == TRAIN_OK)
        code = path_of(report, "log.jsonl", path, sizeof path);
    if (code != TRAIN_OK)
        return code;
    report->log = fopen(path, "we");
    return report->log ? TRAIN_OK : train_fail(TRAIN_USAGE, "--out: %s: %s", path, strerror(errno));
}

static void erase_bar(struct report *report)
{
    if (report->bar_drawn)
        fputs("\r\033[K", stderr);
    report->bar_drawn = false;
}

/* The bar again, at most ten times a second. */
static void draw_bar(struct report *report, const struct step_figures *figures)
{
    const double now = seconds_now(), part = (double)figures->step / (double)report->steps;
    const int full = (int)(part * BAR_WIDTH);
    const double left = (now - report->begun) / part * (1 - part);

    if (now - report->bar_time < 0.1 && figures->step < report->steps)
        return;
    report->bar_time = now;
    report->bar_drawn = true;
    fprintf(stderr, "\r\033[K[%.*s%.*s] %3.0f %%  epoch %d/%d  loss %.3f  test %.2f %%  %.0f samples/s  %.0f s left",
            full, "##############################", BAR_WIDTH - full, "..............................", part * 100,
            figures->epoch, report->epochs, figures->loss, report->accuracy * 100, report->rate, left);
    fflush(stderr);
}

static void print_text(struct report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void print_text(struct report *report, const char *format, ...)
{
    va_list values;

    if (report->options->json)
        return;
    erase_bar(report);
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
}

/* A JSON number with all digits, null if it is not finite. Uses one of a few static buffers in turn. */
static const char *number(double value)
{
    static char text[8][32];
    static unsigned next;
    char *to = text[next++ % 8];

    if (isfinite(value))
        snprintf(to, sizeof text[0], "%.17g", value);
    else
        snprintf(to, sizeof text[0], "null");
    return to;
}

static void write_begin(FILE *out, const struct report *report, const char *about)
{
    fputs("{\"event\":\"begin\",\"about\":", out);
    hoop_json_string(out, about);
    fprintf(out, ",\"ranks\":%d,\"steps\":%zu,\"steps_per_epoch\":%zu}\n", report->ranks, report->steps,
            report->steps_per_epoch);
}

void report_begin(struct report *report, const char *about, size_t steps, size_t steps_per_epoch)
{
    report->steps = report->picture.steps = steps;
    report->steps_per_epoch = report->picture.steps_per_epoch = steps_per_epoch;
    report->epochs = (int)((steps + steps_per_epoch - 1) / steps_per_epoch);
    report->begun = seconds_now();
    if (!report->active)
        return;
    snprintf(report->picture.title, sizeof report->picture.title, "%s", about);
    print_text(report, "hoop-train: %s, %zu steps\n", about, steps);
    write_begin(report->log, report, about);
    if (report->options->json)
        write_begin(stdout, report, about);
}

static void write_step(FILE *out, const struct step_figures *f)
{
    fprintf(out,
            "{\"event\":\"step\",\"step\":%zu,\"epoch\":%d,\"loss\":%s,\"accuracy\":%s,\"gnorm\":%s,\"lr\":%.9g,"
            "\"samples_per_second\":%.1f,\"data_ms\":%.4f,\"forward_ms\":%.4f,\"backward_ms\":%.4f,\"comm_ms\":%.4f,"
            "\"exposed_ms\":%.4f,\"optimizer_ms\":%.4f}\n",
            f->step, f->epoch, number(f->loss), number(f->accuracy), number(f->norm), f->rate, f->samples_per_second,
            f->data * 1e3, f->forward * 1e3, f->backward * 1e3, f->communication * 1e3, f->exposed * 1e3,
            f->update * 1e3);
}

static void print_step(struct report *report, const struct step_figures *f)
{
    print_text(report,
               "step %zu/%zu ep %d loss %.6f acc %.4f gnorm %.3f lr %.2e samp/s %.0f data %.2fms fwd %.2f bwd %.2f "
               "comm %.2f(exp %.2f) opt %.2f\n",
               f->step, report->steps, f->epoch, f->loss, f->accuracy, f->norm, f->rate, f->samples_per_second,
               f->data * 1e3, f->forward * 1e3, f->backward * 1e3, f->communication * 1e3, f->exposed * 1e3,
               f->update * 1e3);
}

void report_step(struct report *report, const struct step_figures *f)
{
    const bool due = report->options->log_every && f->step % report->options->log_every == 0;

    if (!report->active)
        return;
    picture_step(&report->picture, f->step, f->loss, f->accuracy);
    report->rate = f->samples_per_second;
    write_step(report->log, f);
    if (due && report->options->json)
        write_step(stdout, f);
    if (due)
        print_step(report, f);
    if (report->bar)
        draw_bar(report, f);
}

static void write_evaluation(FILE *out, const struct evaluation *e)
{
    fprintf(out,
            "{\"event\":\"eval\",\"step\":%zu,\"epoch\":%d,\"test_accuracy\":%s,\"test_loss\":%s,\"right\":%" PRId64
            ",\"count\":%" PRId64 "}\n",
            e->step, e->epoch, number(e->accuracy), number(e->loss), e->right, e->count);
}

void report_evaluation(struct report *report, const struct evaluation *e)
{
    if (!report->active)
        return;
    report->accuracy = e->accuracy;
    picture_test(&report->picture, e->step, e->loss, e->accuracy);
    write_evaluation(report->log, e);
    if (report->options->json)
        write_evaluation(stdout, e);
    print_text(report, "eval step %zu ep %d test accuracy %.4f (%" PRId64 " of %" PRId64 ") loss %.4f\n", e->step,
               e->epoch, e->accuracy, e->right, e->count, e->loss);
}

static void write_verified(FILE *out, size_t step, uint64_t parameters, int ranks)
{
    fprintf(out, "{\"event\":\"verify\",\"step\":%zu,\"digest\":\"%016" PRIx64 "\",\"ranks\":%d}\n", step, parameters,
            ranks);
}

void report_verified(struct report *report, size_t step, uint64_t parameters)
{
    if (!report->active)
        return;
    write_verified(report->log, step, parameters, report->ranks);
    if (report->options->json)
        write_verified(stdout, step, parameters, report->ranks);
    if (report->options->log_every)
        print_text(report, "verify step %zu digest %016" PRIx64 " equal on %d rank%s\n", step, parameters,
                   report->ranks, report->ranks == 1 ? "" : "s");
}

/* Part of the communication time that the backward pass hides, 0 … 1. */
static double hidden_part(const struct summary *s)
{
    return s->communication > 0 ? fmin(1, fmax(0, (s->serial - s->exposed) / s->communication)) : 0;
}

static void write_summary(FILE *out, const struct report *report, const struct summary *s, const char *picture)
{
    fputs("{\"event\":\"summary\",\"end\":", out);
    hoop_json_string(out, s->why);
    fprintf(out,
            ",\"step\":%zu,\"test_accuracy\":%s,\"right\":%" PRId64 ",\"count\":%" PRId64
            ",\"ranks\":%d,\"seconds\":%.3f,"
            "\"training_seconds\":%.3f,\"samples_per_second\":%.1f,\"comm_ms\":%.4f,\"exposed_ms\":%.4f,"
            "\"serial_ms\":%.4f,\"comm_hidden\":%.4f,\"digest\":\"%016" PRIx64 "\",\"checks\":%zu,\"plan\":",
            s->step, s->last.count ? number(s->last.accuracy) : "null", s->last.right, s->last.count, report->ranks,
            s->seconds, s->training_seconds, s->samples_per_second, s->communication * 1e3, s->exposed * 1e3,
            s->serial * 1e3, hidden_part(s), s->parameters, s->checks);
    hoop_json_string(out, s->plan);
    fputs(",\"picture\":", out);
    hoop_json_string(out, picture);
    fputs("}\n", out);
}

static void print_summary(struct report *report, const struct summary *s, const char *picture)
{
    print_text(report, "\n%s after step %zu of %zu\n", s->why, s->step, report->steps);
    if (s->last.count > 0)
        print_text(report, "test accuracy  %.4f (%" PRId64 " of %" PRId64 ") after epoch %d\n", s->last.accuracy,
                   s->last.right, s->last.count, s->last.epoch);
    else
        print_text(report, "test accuracy  not measured\n");
    print_text(report, "time           %.1f s, of which %.1f s training; %.0f samples/s on %d rank%s\n", s->seconds,
               s->training_seconds, s->samples_per_second, report->ranks, report->ranks == 1 ? "" : "s");
    if (report->ranks > 1 && s->communication > 0)
        print_text(report,
                   "communication  %.0f %% hidden: the all-reduces of a step take %.2f ms; it waits %.2f ms, without "
                   "overlap %.2f "
                   "ms; %s\n",
                   hidden_part(s) * 100, s->communication * 1e3, s->exposed * 1e3, s->serial * 1e3, s->plan);
    print_text(report, "parameters     digest %016" PRIx64 ", equal on all ranks at %zu checks\n", s->parameters,
               s->checks);
    print_text(report, "picture        %s\n", picture);
}

static int close_log(struct report *report)
{
    const int failed = ferror(report->log), closed = fclose(report->log);

    report->log = NULL;
    if (failed || closed != 0)
        return train_fail(TRAIN_RESOURCE, "%s/log.jsonl: could not be written: %s", report->options->out,
                          strerror(errno));
    return TRAIN_OK;
}

int report_end(struct report *report, const struct summary *s)
{
    char path[4096 + 32];

    if (!report->active)
        return TRAIN_OK;
    erase_bar(report);
    int code = path_of(report, "curves.svg", path, sizeof path);
    if (code == TRAIN_OK)
        code = picture_write(&report->picture, path);
    if (code != TRAIN_OK)
        return code;
    print_summary(report, s, path);
    write_summary(report->log, report, s, path);
    if (report->options->json)
        write_summary(stdout, report, s, path);
    code = close_log(report);
    if (code == TRAIN_OK && fflush(stdout) != 0)
        return train_fail(TRAIN_RESOURCE, "standard output: %s", strerror(errno));
    return code;
}

void report_free(struct report *report)
{
    erase_bar(report);
    if (report->log)
        fclose(report->log);
    report->log = NULL;
}
