// SPDX-License-Identifier: BSD-3-Clause
/* hoop-info: what this installation of hoop is, what it can do here, and which settings are in force. */
#include <errno.h>
#include <hoop.h>
#include <hoop/plan.h>
#include <hoop/transport.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "json.h"
#include "manual.h"

enum { KEY_JSON = 0x100 };

static const struct argp_option options[] = {
    {"json", KEY_JSON, NULL, 0, "the same in JSON; what cannot be told is null", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    bool *json = state->input;

    switch (key) {
    case KEY_JSON:
        *json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "%s: no arguments are expected", argument);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {
    options,
    parse,
    NULL,
    "Shows the version and build of hoop, its transports, CUDA devices and algorithms, the launcher that it "
    "was started by, the settings in force and where each comes from, and what of this machine matters to it.",
    NULL,
    NULL,
    NULL};

static const struct hoop_manual_section sections[] = {
    {"EXIT CODES", "0\tall was shown\n"
                   "1\tthe output cannot be written\n"
                   "2\twrong usage\n"},
    {NULL, NULL},
};

static const struct hoop_manual manual = {.name = "hoop-info",
                                          .summary = "show version, capabilities, settings and the machine",
                                          .argp = &parser,
                                          .sections = sections,
                                          .settings = true};

/* ---- for people ---- */

static void print_bytes(const char *number)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double bytes = strtod(number, NULL);
    int unit = 0;

    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    printf("%.*f %s", bytes < 10 && unit > 0 ? 1 : 0, bytes, units[unit]);
}

static void print_facts(const char *title, const struct fact *facts, int count)
{
    printf("%s\n", title);
    for (int i = 0; i < count; i++) {
        printf("  %-20s ", facts[i].name);
        if (facts[i].value[0] == '\0')
            printf("unknown");
        else if (facts[i].number && strcmp(facts[i].unit, "B") == 0)
            print_bytes(facts[i].value);
        else
            printf("%s", facts[i].value);
        printf("%s%s%s\n", facts[i].note[0] != '\0' ? "  (" : "", facts[i].note, facts[i].note[0] != '\0' ? ")" : "");
    }
}

static void print_transports(void)
{
    const struct hoop_transport *transport;
    const char *help;

    printf("\ntransports\n");
    for (int i = 0; (transport = hoop_transport_get(i, &help)) != NULL; i++) {
        printf("  %-20s %s\n", transport->name, help);
        if (transport->probe() != HOOP_OK)
            printf("  %-20s not here: %s\n", "", hoop_last_error(NULL));
    }
}

/* Does the algorithm solve the collective for some number of ranks that people have, by twos in groups? */
static bool solves(const struct hoop_algo *algo, enum hoop_coll coll)
{
    struct hoop_groups *groups;
    bool able = false;

    for (int ranks = 2; ranks <= 9 && !able; ranks++) {
        if (hoop_groups_cut(&groups, ranks, "2") != HOOP_OK)
            return false;
        const struct hoop_problem problem = {.coll = coll, .ranks = ranks, .channels = 1, .groups = groups};
        able = algo->applicable(&problem);
        hoop_groups_free(groups);
    }
    return able;
}

static void print_algorithms(void)
{
    const struct hoop_algo *algo;

    printf("\nalgorithms\n");
    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++) {
        printf("  %-20s %s\n  %-20s for", algo->name, hoop_algo_help(i), "");
        for (int coll = 0; coll < HOOP_COLLS; coll++)
            if (solves(algo, (enum hoop_coll)coll))
                printf(" %s", hoop_coll_name((enum hoop_coll)coll));
        putchar('\n');
    }
}

/* The constants by which algorithms are chosen; origin: where they come from, or the error that keeps them. */
static bool read_constants(struct hoop_model *model, char *origin, size_t size)
{
    if (hoop_model_current(model, origin, size) == HOOP_OK)
        return true;
    *model = hoop_model_builtin();
    snprintf(origin, size, "%s", hoop_last_error(NULL));
    return false;
}

static double constant_value(const struct hoop_model *model, const struct hoop_constant *constant)
{
    return *(const double *)(const void *)((const char *)model + constant->offset);
}

static void print_constants(void)
{
    struct hoop_constant constant;
    struct hoop_model model;
    char origin[1024];
    const bool good = read_constants(&model, origin, sizeof(origin));

    printf("\nconstants of the cost model: %s%s\n", good ? "" : "no communicator can be made: ", origin);
    for (int i = 0; good && hoop_constant_get(i, &constant); i++)
        printf("  %-20s %.3f %s  (%s)\n", constant.name, constant_value(&model, &constant), constant.unit,
               constant.help);
}

static void print_launcher(void)
{
    struct hoop_launcher launcher;

    printf("\nlauncher\n");
    if (hoop_launcher_get(&launcher) != HOOP_OK) {
        printf("  %-20s %s\n", "wrong", hoop_last_error(NULL));
        return;
    }
    printf("  %-20s %s\n", "name", launcher.name);
    if (launcher.ranks > 0)
        printf("  %-20s %d of %d\n", "rank", launcher.rank, launcher.ranks);
    else
        printf("  %-20s %d; its key store tells of how many\n", "rank", launcher.rank);
    if (launcher.local_rank >= 0)
        printf("  %-20s %d\n", "rank on this host", launcher.local_rank);
    if (launcher.local_size >= 0)
        printf("  %-20s %d\n", "ranks on this host", launcher.local_size);
    printf("  %-20s %s\n", "meeting", launcher.meeting);
}

static void print_settings(void)
{
    struct hoop_setting setting;

    printf("\nsettings\n");
    for (int i = 0; hoop_setting_get(i, &setting); i++) {
        const char *value = setting.value[0] != '\0' ? setting.value : "none", *unit = setting.unit;

        printf("  HOOP_%-15s %s  (%s)\n", setting.name, value, setting.origin);
        printf("  %-20s %s%s%s%s\n", "", setting.help, *unit != '\0' ? " [" : "", unit, *unit != '\0' ? "]" : "");
    }
}

static void print_all(void)
{
    struct fact facts[MOST_FACTS];
    int count = build_facts(facts);

    print_facts("hoop", facts, count);
    print_transports();
    print_devices();
    print_algorithms();
    print_launcher();
    print_settings();
    print_constants();
    count = machine_facts(facts);
    print_facts("\nmachine", facts, count);
}

/* ---- JSON ---- */

static void json_text(const char *key, const char *text)
{
    printf(", \"%s\": ", key);
    if (text[0] == '\0')
        fputs("null", stdout);
    else
        hoop_json_string(stdout, text);
}

static void json_facts(const char *title, const struct fact *facts, int count)
{
    printf("  \"%s\": {", title);
    for (int i = 0; i < count; i++) {
        printf("%s\n    \"%s\": ", i > 0 ? "," : "", facts[i].key);
        if (facts[i].value[0] == '\0' || (strcmp(facts[i].value, "none") == 0 && strstr(facts[i].key, "bytes") != NULL))
            fputs("null", stdout);
        else if (facts[i].number)
            fputs(facts[i].value, stdout);
        else
            hoop_json_string(stdout, facts[i].value);
    }
    fputs("\n  }", stdout);
}

static void json_transports(void)
{
    const struct hoop_transport *transport;
    const char *help;

    fputs("  \"transports\": [", stdout);
    for (int i = 0; (transport = hoop_transport_get(i, &help)) != NULL; i++) {
        const bool here = transport->probe() == HOOP_OK;

        printf("%s\n    {\"name\": \"%s\"", i > 0 ? "," : "", transport->name);
        json_text("help", help);
        printf(", \"usable\": %s", here ? "true" : "false");
        json_text("reason", here ? "" : hoop_last_error(NULL));
        putchar('}');
    }
    fputs("\n  ]", stdout);
}

static void json_algorithms(void)
{
    const struct hoop_algo *algo;

    fputs("  \"algorithms\": [", stdout);
    for (int i = 0; (algo = hoop_algo_get(i)) != NULL; i++) {
        bool first = true;

        printf("%s\n    {\"name\": \"%s\"", i > 0 ? "," : "", algo->name);
        json_text("help", hoop_algo_help(i));
        fputs(", \"collectives\": [", stdout);
        for (int coll = 0; coll < HOOP_COLLS; coll++)
            if (solves(algo, (enum hoop_coll)coll)) {
                printf("%s\"%s\"", first ? "" : ", ", hoop_coll_name((enum hoop_coll)coll));
                first = false;
            }
        fputs("]}", stdout);
    }
    fputs("\n  ]", stdout);
}

static void json_number(const char *key, int value, int unknown)
{
    if (value == unknown)
        printf(", \"%s\": null", key);
    else
        printf(", \"%s\": %d", key, value);
}

static void json_launcher(void)
{
    struct hoop_launcher launcher = {.local_rank = -1, .local_size = -1};
    const bool good = hoop_launcher_get(&launcher) == HOOP_OK;

    printf("  \"launcher\": {\"usable\": %s", good ? "true" : "false");
    json_text("reason", good ? "" : hoop_last_error(NULL));
    if (good) {
        json_text("name", launcher.name);
        json_number("rank", launcher.rank, -1);
        json_number("ranks", launcher.ranks, 0);
        json_number("local_rank", launcher.local_rank, -1);
        json_number("local_size", launcher.local_size, -1);
        json_text("meeting", launcher.meeting);
    }
    putchar('}');
}

static void json_settings(void)
{
    struct hoop_setting setting;

    fputs("  \"settings\": [", stdout);
    for (int i = 0; hoop_setting_get(i, &setting); i++) {
        printf("%s\n    {\"name\": \"HOOP_%s\"", i > 0 ? "," : "", setting.name);
        json_text("value", setting.value);
        json_text("unit", setting.unit);
        json_text("origin", setting.origin);
        json_text("help", setting.help);
        putchar('}');
    }
    fputs("\n  ]", stdout);
}

static void json_constants(void)
{
    struct hoop_constant constant;
    struct hoop_model model;
    char origin[1024];
    const bool good = read_constants(&model, origin, sizeof(origin));

    fputs("  \"constants\": {\"usable\": ", stdout);
    fputs(good ? "true" : "false", stdout);
    json_text("origin", origin);
    for (int i = 0; good && hoop_constant_get(i, &constant); i++)
        printf(", \"%s\": %.3f", constant.name, constant_value(&model, &constant));
    putchar('}');
}

static void json_all(void)
{
    struct fact facts[MOST_FACTS];
    int count = build_facts(facts);

    fputs("{\n", stdout);
    json_facts("build", facts, count);
    fputs(",\n", stdout);
    json_transports();
    fputs(",\n", stdout);
    json_devices();
    fputs(",\n", stdout);
    json_algorithms();
    fputs(",\n", stdout);
    json_launcher();
    fputs(",\n", stdout);
    json_settings();
    fputs(",\n", stdout);
    json_constants();
    fputs(",\n", stdout);
    count = machine_facts(facts);
    json_facts("machine", facts, count);
    fputs("\n}\n", stdout);
}

int main(int argc, char **argv)
{
    bool json = false;

    if (hoop_manual_parse(&manual, argc, argv, 0, &json) != 0)
        return EXIT_FAILURE;
    if (json)
        json_all();
    else
        print_all();
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("hoop-info: standard output");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
