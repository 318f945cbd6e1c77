// SPDX-License-Identifier: BSD-3-Clause
/* hoop-status: what the ranks of a running, hung or failed job do, and who keeps the others waiting. */
#include <errno.h>
#include <hoop/flight.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manual.h"
#include "status.h"

enum { KEY_JSON = 0x100, MOST_HISTORY = 1024, EXIT_NONE = 3 };

struct asked {
    struct finds finds;
    bool named; /* a job or a file was given */
    bool json;
    int history;
};

static const struct argp_option options[] = {
    {"history", 'H', "N", 0, "the latest N operations of each rank, oldest first (at most 1024)", 0},
    {"json", KEY_JSON, NULL, 0, "the same in JSON; what is not known is null", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static bool find(struct asked *asked, const char *argument)
{
    char *end;
    const long process = strtol(argument, &end, 10);

    asked->named = true;
    return *end == '\0' && process > 0 ? find_processes(&asked->finds, (pid_t)process)
                                       : find_file(&asked->finds, argument);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct asked *asked = state->input;
    char *end;

    switch (key) {
    case KEY_JSON:
        asked->json = true;
        return 0;
    case 'H':
        asked->history = (int)strtol(argument, &end, 10);
        if (*end != '\0' || asked->history < 0 || asked->history > MOST_HISTORY)
            argp_error(state, "--history=%s: give 0 to %d", argument, MOST_HISTORY);
        return 0;
    case ARGP_KEY_ARG:
        if (!find(asked, argument))
            exit(EXIT_NONE);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {options,
                                   parse,
                                   "[JOB...]",
                                   "Shows what each rank of a job on this host does in each of its communicators: the "
                                   "call, its number and its step, for which rank it "
                                   "waits and since when; and says who keeps the others waiting. JOB is the process of "
                                   "hooprun or of a rank, or a file that "
                                   "HOOP_FLIGHT has made when a communicator failed; none: all processes of this user. "
                                   "The job is not disturbed, and may be stopped or hung.",
                                   NULL,
                                   NULL,
                                   NULL};

static const struct hoop_manual_section sections[] = {
    {"STATES", "absent\tthe rank has not come yet\n"
               "outside\tin no call of this communicator: its program does something else\n"
               "inside\tin a call, and not seen to wait; of a rank on another host: it has made this call\n"
               "waiting\tin a call, and it has waited long enough to sleep\n"
               "failed\tits latest call has failed\n"
               "left\tit has left the communicator in peace\n"
               "\n"
               "Behind it stands what the system says of the process: stopped, ended (not waited for yet), gone; or "
               "far: it is on another "
               "host, where hoop-status shows more.\n"},
    {"EXAMPLES", "  hoop-status 4711          what the job of hooprun 4711 does\n"
                 "  hoop-status --json        all communicators of this user's processes\n"
                 "  HOOP_FLIGHT=/tmp/flight hooprun -n 4 train; hoop-status -H 20 /tmp/flight.*\n"},
    {"EXIT CODES", "0\tall was shown\n"
                   "1\tthe output cannot be written, or something cannot be read\n"
                   "2\twrong usage\n"
                   "3\tthere is no such process, file or communicator\n"},
    {NULL, NULL},
};

static const struct hoop_manual_words words[] = {{"", "@file"}, {NULL, NULL}};

static const struct hoop_manual manual = {.name = "hoop-status",
                                          .summary = "show what the ranks of a job do, and who is late",
                                          .argp = &parser,
                                          .sections = sections,
                                          .words = words};

static bool show(const struct asked *asked, const struct found *found)
{
    struct hoop_flight *flight;

    if (hoop_flight_open(&flight, found->descriptor) != HOOP_OK) {
        fprintf(stderr, "hoop-status: %s\n", hoop_last_error(NULL));
        return false;
    }
    const bool fine = (asked->json ? write_json : write_text)(flight, found, asked->history);
    hoop_flight_close(flight);
    return fine;
}

static bool show_all(const struct asked *asked)
{
    bool fine = true;

    if (asked->json)
        fputs("{\"communicators\": [\n", stdout);
    for (size_t i = 0; i < asked->finds.count; i++) {
        if (i > 0)
            fputs(asked->json ? ",\n" : "\n", stdout);
        fine &= show(asked, &asked->finds.found[i]);
    }
    if (asked->json)
        fputs("]}\n", stdout);
    return fine;
}

/* Show what was found; returns the exit code. */
static int conclude(const struct asked *asked)
{
    const bool fine = show_all(asked);

    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("hoop-status: standard output");
        return EXIT_FAILURE;
    }
    if (asked->finds.count == 0)
        fprintf(stderr, "hoop-status: no communicator found%s\n",
                asked->finds.unreadable > 0 ? "; some processes belong to other users" : "");
    return !fine ? EXIT_FAILURE : asked->finds.count == 0 ? EXIT_NONE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct asked asked = {.named = false};
    int code = EXIT_FAILURE;

    if (hoop_manual_parse(&manual, argc, argv, 0, &asked) == 0)
        code = asked.named || find_processes(&asked.finds, 0) ? conclude(&asked) : EXIT_NONE;
    find_free(&asked.finds);
    return code;
}
