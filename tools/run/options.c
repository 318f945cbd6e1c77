// SPDX-License-Identifier: BSD-3-Clause
/* The command line of hooprun. */
#include "manual.h"
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BIND = 300, KEY_TIMEOUT, KEY_LOG, KEY_NO_PREFIX, KEY_HOSTS, KEY_RSH, KEY_RESTARTS, KEY_SURVIVORS };

static const struct argp_option table[] = {
    {"ranks", 'n', "N", 0, "number of ranks to start (default 1)", 0},
    {"hosts", KEY_HOSTS, "A,B:N,...", 0, "start the ranks on these hosts, 1 or N on each, in this order", 0},
    {"rsh", KEY_RSH, "COMMAND", 0, "what starts a program on a host: it gets the host and the program (default ssh)",
     0},
    {"bind", KEY_BIND, "core|none", 0, "core: give each rank cores of its own, in order; none: leave it (default)", 0},
    {"timeout", KEY_TIMEOUT, "SECONDS", 0, "end the job after this time, with exit code 124", 0},
    {"max-restarts", KEY_RESTARTS, "K", 0, "start the whole job again after a rank failed, at most K times (default 0)",
     0},
    {"survivors", KEY_SURVIVORS, NULL, 0, "when a rank fails, let the others go on: the job fails only if all ranks do",
     0},
    {"log-dir", KEY_LOG, "DIRECTORY", 0, "also write each rank's output to DIRECTORY/rank-N.log, without prefix", 0},
    {"no-prefix", KEY_NO_PREFIX, NULL, 0, "do not put [rank] before each line", 0},
    {"quiet", 'q', NULL, 0, "do not show the ranks' output (see --log-dir)", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static const char description[] = "Start N copies of PROGRAM as the ranks of one job, on this host or those of "
                                  "--hosts, and wait for them. Each finds the others by "
                                  "hoop_comm_init_env().";

static const struct hoop_manual_section sections[] = {
    {"EXAMPLES", "  hooprun -n 4 hoop-bench all_reduce -b 8 -e 64M -f 2\n"
                 "  hooprun -n 2 --bind core --log-dir logs hoop-train\n"
                 "  hooprun -n 8 --timeout 60 ./my-test --its-own-option\n"
                 "  hooprun --hosts node1:4,node2:4 hoop-train\n"
                 "  hooprun -n 3 sh -c 'echo I am $HOOP_RANK of $HOOP_SIZE'"},
    {"HOSTS", "Every entry of --hosts counts as a host of its own: its ranks share memory, and reach those of\n"
              "others by TCP. PROGRAM must be found there under the same name. Where the name of the command of\n"
              "--rsh is ssh or rsh, it gets one line for a shell, which sets the variables of the ranks and all\n"
              "HOOP_ variables, and PROGRAM's input is empty; any other command is taken to run its arguments\n"
              "as they are (\"ip netns exec\"). The ranks meet at HOOP_ADDRESS, or the first address of this\n"
              "host that is not loopback; HOOP_IFACE and HOOP_PORTS narrow down what they use themselves."},
    {"OUTPUT", "What a rank writes to its standard output and standard error appears on hooprun's,\n"
               "line by line as \"[rank] line\". A line without an end gets one; a line beyond 64 KiB\n"
               "is shown in parts that end and begin with \"...\". Rank 0 reads hooprun's standard\n"
               "input, unless that is a terminal; the other ranks read an empty one."},
    {"END", "The job ends when all ranks have ended. When one fails (is killed by a signal, or exits\n"
            "with another code than 0), the others have 1 second to report and end; then they get\n"
            "SIGTERM, and 1 second later SIGKILL. Processes that ranks leave behind are killed, also\n"
            "if they made themselves daemons, and also if hooprun is killed itself.\n"
            "\n"
            "With --survivors the others go on, for programs that call hoop_comm_shrink(); a rank that fails\n"
            "is told at once.\n"
            "\n"
            "SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to every rank and its\n"
            "children. After one of the first four the ranks have 30 seconds; a second SIGINT kills\n"
            "them at once. Stopping hooprun from the terminal stops the ranks."},
    {"RESTARTS", "With --max-restarts K a job in which a rank failed is cleared away as above and started again, all\n"
                 "ranks on all hosts, with a new HOOP_ID and HOOP_RESTART counted up, at most K times. The ranks\n"
                 "are to go on from what they have saved. A job that hooprun itself ends, by --timeout (which is\n"
                 "the time of all tries together) or after a signal to it, is not started again. Logs go on."},
    {"EXIT STATUS", "0\tall ranks exited with 0; with --survivors, one of them did\n"
                    "1-123\tthe code of the rank that failed first\n"
                    "124\tthe time of --timeout was over (ranks still running are named)\n"
                    "125\thooprun itself could not do its work\n"
                    "126\tPROGRAM cannot be executed\n"
                    "127\tPROGRAM was not found; nothing was started\n"
                    "128+S\ta rank was killed by signal S; this outranks the errors that followed\n"
                    "\n"
                    "With --max-restarts, that of the last try.\n"
                    "The last line on standard error names the rank that failed, and how."},
    {"VARIABLES OF THE RANKS", "HOOP_RANK, HOOP_SIZE\tthe rank, 0 to N - 1, and N\n"
                               "HOOP_LOCAL_RANK, HOOP_LOCAL_SIZE\tthe same, among the ranks of this host\n"
                               "HOOP_RESTART\thow often the job was started again: 0, 1, ... K\n"
                               "HOOP_HOST\tthe entry of --hosts, if there is one\n"
                               "HOOP_ID\twhere and how to meet: a secret\n"
                               "OMP_NUM_THREADS, OPENBLAS_NUM_THREADS\t1, unless set\n"
                               "HOOPRUN_TERMINAL\t1 if standard error is a terminal: progress may be shown on it\n"
                               "\n"
                               "HOOP_ADDRESS sets the address on which the ranks meet (127.0.0.1)."},
    {NULL, NULL},
};

static const struct hoop_manual_words words[] = {
    {"bind", "core none"}, {"rsh", "@command"}, {"log-dir", "@directory"}, {"", "@command"}, {NULL, NULL},
};

static int parse_ranks(const char *text, struct argp_state *state)
{
    char *end;
    const long ranks = strtol(text, &end, 10);

    if (end == text || *end != '\0' || ranks < 1 || ranks > MOST_RANKS)
        argp_error(state, "-n %s: give a number of ranks from 1 to %d", text, MOST_RANKS);
    return (int)ranks;
}

static int parse_restarts(const char *text, struct argp_state *state)
{
    enum { MOST = 1000000 };
    char *end;
    const long restarts = strtol(text, &end, 10);

    if (end == text || *end != '\0' || restarts < 0 || restarts > MOST)
        argp_error(state, "--max-restarts %s: give a number from 0 to %d", text, MOST);
    return (int)restarts;
}

static double parse_seconds(const char *text, struct argp_state *state)
{
    char *end;
    const double seconds = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(seconds) || seconds <= 0)
        argp_error(state, "--timeout %s: give seconds above 0", text);
    return seconds;
}

/* What only shows when all options are read. */
static void check(struct options *options, struct argp_state *state)
{
    if (options->hosts && options->ranks && options->ranks != options->host_ranks)
        argp_error(state, "-n %d, but --hosts has room for %d: leave -n out, or make them equal", options->ranks,
                   options->host_ranks);
    if (options->hosts && options->bind_core)
        argp_error(state, "--bind core is for ranks of this host, not of --hosts");
    if (options->hosts)
        options->ranks = options->host_ranks;
    if (options->ranks == 0)
        options->ranks = 1;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 'n':
        options->ranks = parse_ranks(argument, state);
        return 0;
    case KEY_BIND:
        if (strcmp(argument, "core") != 0 && strcmp(argument, "none") != 0)
            argp_error(state, "--bind %s: give core or none", argument);
        options->bind_core = argument[0] == 'c';
        return 0;
    case KEY_HOSTS: {
        const char *wrong = hosts_parse(options, argument);
        if (wrong)
            argp_error(state, "--hosts %s: %s", argument, wrong);
        return 0;
    }
    case KEY_RSH:
        if (strspn(argument, " ") == strlen(argument) || argument[0] == ' ')
            argp_error(state, "--rsh '%s': give a command", argument);
        options->rsh = argument;
        return 0;
    case ARGP_KEY_END:
        check(options, state);
        return 0;
    case KEY_TIMEOUT:
        options->timeout = parse_seconds(argument, state);
        return 0;
    case KEY_RESTARTS:
        options->restarts = parse_restarts(argument, state);
        return 0;
    case KEY_SURVIVORS:
        options->survivors = true;
        return 0;
    case KEY_LOG:
        options->log_directory = argument;
        return 0;
    case KEY_NO_PREFIX:
        options->prefix = false;
        return 0;
    case 'q':
        options->quiet = true;
        return 0;
    case ARGP_KEY_ARG: /* what follows the program is its own */
        options->program = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which program shall the ranks run?");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void options_parse(struct options *options, int argc, char **argv)
{
    static const struct argp argp = {table, parse, "PROGRAM [ARGUMENT...]", description, NULL, NULL, NULL};
    static const struct hoop_manual manual = {
        "hooprun", "run a program as the ranks of one hoop job", &argp, sections, words, false};

    *options = (struct options){.rsh = "ssh", .prefix = true};
    hoop_manual_parse(&manual, argc, argv, ARGP_IN_ORDER, options);
}
