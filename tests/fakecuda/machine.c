// SPDX-License-Identifier: BSD-3-Clause
/* The machine that the environment describes.
 *
 * FAKECUDA_MACHINE names a file (or is the text itself, with ';' for line ends):
 *
 *     device bus=0000:03:00.0 name=GPU_A sms=16 blocks=2 capability=9.0 memory=1024 node=0 uuid=7 instance=0
 *     peer 0-1 good        both ways; 0>1: one way. Kinds: good none lose flip. With a rank behind (lower is nearer): good:2
 *     peer all none
 *
 * Each word is optional. Devices with equal bus and instance=1 are MIG instances of a board. Without it there are FAKECUDA_DEVICES
 * equal devices. FAKECUDA_PEERS="all=good,0-1=none,2>3=lose" changes paths. CUDA_VISIBLE_DEVICES is honoured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fake.h"

static struct fake_device devices[FAKE_DEVICES];
static int count;
static enum fake_path paths[FAKE_DEVICES][FAKE_DEVICES];
static int ranks[FAKE_DEVICES][FAKE_DEVICES];
static int visible[FAKE_DEVICES];
int fake_device_count;
struct fake_options fake_options;

static void read_options(void)
{
    const char *text;

#define OPTION(name, value, unit, help) \
    text = getenv("FAKECUDA_" #name);   \
    fake_options.name = text && text[0] ? strtol(text, NULL, 0) : (value);
#include "tests/fakecuda/options.def"
}

static int number_in(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

static void identify(struct fake_device *device, unsigned number)
{
    for (unsigned i = 0; i < 16; i++) {
        device->board.bytes[i] = (unsigned char)(device->bus[i % 12] * 7 + (int)i);
        device->uuid.bytes[i] = (unsigned char)(device->board.bytes[i] + (device->instance ? number * 31 + 1 : number));
    }
}

static void add_device(char *words)
{
    struct fake_device *device = &devices[count];
    unsigned number = 0;
    char *rest = NULL;

    *device = (struct fake_device){.index = count,
                                   .major = 9,
                                   .multiprocessors = (int)fake_options.SMS,
                                   .blocks = (int)fake_options.BLOCKS,
                                   .memory = (uint64_t)fake_options.MEMORY << 20};
    snprintf(device->name, sizeof device->name, "Fake GPU");
    snprintf(device->bus, sizeof device->bus, "0000:%02x:00.0", count + 1);
    for (char *word = strtok_r(words, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        char *value = strchr(word, '=');

        if (!value++)
            continue;
        if (strncmp(word, "bus", 3) == 0)
            snprintf(device->bus, sizeof device->bus, "%.12s", value);
        else if (strncmp(word, "name", 4) == 0)
            snprintf(device->name, sizeof device->name, "%.60s", value);
        else if (strncmp(word, "sms", 3) == 0)
            device->multiprocessors = number_in(value);
        else if (strncmp(word, "blocks", 6) == 0)
            device->blocks = number_in(value);
        else if (strncmp(word, "capability", 10) == 0)
            sscanf(value, "%d.%d", &device->major, &device->minor);
        else if (strncmp(word, "memory", 6) == 0)
            device->memory = strtoull(value, NULL, 0) << 20;
        else if (strncmp(word, "node", 4) == 0)
            device->node = number_in(value);
        else if (strncmp(word, "uuid", 4) == 0)
            number = (unsigned)number_in(value);
        else if (strncmp(word, "instance", 8) == 0)
            device->instance = number_in(value) != 0;
    }
    identify(device, number ? number : (device->instance ? (unsigned)count : 0));
    count++;
}

static void set_path(int from, int to, enum fake_path path, int rank)
{
    if (from >= 0 && from < FAKE_DEVICES && to >= 0 && to < FAKE_DEVICES && from != to) {
        paths[from][to] = path;
        ranks[from][to] = rank;
    }
}

/* "0-1", "0>1" or "all" to a kind, perhaps with ":rank". */
static void change_path(const char *pair, const char *kind)
{
    static const char *const kinds[] = {"none", "good", "lose", "flip"};
    const char *colon = strchr(kind, ':');
    enum fake_path path = FAKE_PATH_GOOD;
    const int rank = colon ? number_in(colon + 1) : 0;
    int from, to;
    char arrow;

    for (unsigned i = 0; i < 4; i++)
        if (strncmp(kind, kinds[i], 4) == 0)
            path = (enum fake_path)i;
    if (strcmp(pair, "all") == 0) {
        for (int a = 0; a < FAKE_DEVICES; a++)
            for (int b = 0; b < FAKE_DEVICES; b++)
                set_path(a, b, path, rank);
    } else if (sscanf(pair, "%d%c%d", &from, &arrow, &to) == 3) {
        set_path(from, to, path, rank);
        if (arrow == '-')
            set_path(to, from, path, rank);
    }
}

static void read_lines(char *text)
{
    char *rest = NULL;

    for (char *line = strtok_r(text, ";\n", &rest); line; line = strtok_r(NULL, ";\n", &rest)) {
        char pair[32], kind[32];

        line += strspn(line, " \t");
        if (strncmp(line, "device", 6) == 0 && count < FAKE_DEVICES)
            add_device(line + 6);
        else if (sscanf(line, "peer %31s %31s", pair, kind) == 2)
            change_path(pair, kind);
    }
}

static bool read_machine(const char *machine)
{
    static char text[16384];
    FILE *file = strchr(machine, '=') ? NULL : fopen(machine, "re");

    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
    } else {
        snprintf(text, sizeof text, "%s", machine);
    }
    read_lines(text);
    return count > 0;
}

static void read_peers(const char *peers)
{
    char text[1024], *rest = NULL;

    snprintf(text, sizeof text, "%s", peers);
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(word, '=');

        if (value) {
            *value = '\0';
            change_path(word, value + 1);
        } else {
            change_path("all", word);
        }
    }
}

/* "GPU-" and the beginning of the UUID in hexadecimal, or a number. */
static int find_visible(const char *word)
{
    if (strncmp(word, "GPU-", 4) != 0) {
        char *end;
        const long number = strtol(word, &end, 10);

        return end != word && number >= 0 && number < count ? (int)number : -1;
    }
    for (int i = 0; i < count; i++) {
        char text[40];
        unsigned at = 0;

        for (unsigned k = 0; k < 16; k++)
            at += (unsigned)snprintf(text + at, sizeof text - at, "%s%02x",
                                     k == 4 || k == 6 || k == 8 || k == 10 ? "-" : "", devices[i].uuid.bytes[k]);
        if (strncmp(word + 4, text, strlen(word + 4)) == 0)
            return i;
    }
    return -1;
}

static void read_visible(const char *list)
{
    char text[1024], *rest = NULL;

    snprintf(text, sizeof text, "%s", list);
    for (char *word = strtok_r(text, ",", &rest); word && fake_device_count < count;
         word = strtok_r(NULL, ",", &rest)) {
        const int index = find_visible(word);

        if (index < 0) /* the rest of the list does not count */
            return;
        visible[fake_device_count++] = index;
    }
}

int fake_machine_load(void)
{
    const char *machine = getenv("FAKECUDA_MACHINE"), *peers = getenv("FAKECUDA_PEERS");
    const char *list = getenv("CUDA_VISIBLE_DEVICES");

    read_options();
    change_path("all", "good");
    if (!machine || !machine[0] || !read_machine(machine)) {
        while (count < fake_options.DEVICES && count < FAKE_DEVICES) {
            char none[1] = "";

            add_device(none);
        }
    }
    if (peers)
        read_peers(peers);
    if (list) {
        read_visible(list);
    } else {
        for (int i = 0; i < count; i++)
            visible[fake_device_count++] = i;
    }
    return fake_device_count > 0 ? OK : NO_DEVICE;
}

const struct fake_device *fake_device(int ordinal)
{
    return ordinal >= 0 && ordinal < fake_device_count ? &devices[visible[ordinal]] : NULL;
}

const struct fake_device *fake_machine_device(int index)
{
    return index >= 0 && index < count ? &devices[index] : NULL;
}

int fake_device_ordinal(int index)
{
    for (int i = 0; i < fake_device_count; i++)
        if (visible[i] == index)
            return i;
    return -1;
}

enum fake_path fake_path(int from, int to)
{
    return from == to || from < 0 || to < 0 ? FAKE_PATH_GOOD : paths[from][to];
}

int fake_path_rank(int from, int to)
{
    return from < 0 || to < 0 ? 0 : ranks[from][to];
}
