// SPDX-License-Identifier: BSD-3-Clause
/* The CUDA driver and its devices, or why there are none. */
#include <hoop.h>
#include <stdio.h>
#include <string.h>

#include "info.h"
#include "json.h"

/* "0 1 3": the devices whose bits are set. */
static const char *peer_list(uint64_t peers, char text[256])
{
    size_t used = 0;

    snprintf(text, 256, "none");
    for (int i = 0; i < 64 && used < 250; i++)
        if (peers >> i & 1)
            used += (size_t)snprintf(text + used, 256 - used, "%s%d", used > 0 ? " " : "", i);
    return text;
}

static void print_device(int ordinal, int devices)
{
    struct hoop_device device = {.size = sizeof(device)};
    char name[32], peers[256];

    snprintf(name, sizeof(name), "cuda:%d", ordinal);
    if (hoop_device_info(ordinal, &device) != HOOP_OK) {
        printf("  %-20s not usable: %s\n", name, hoop_last_error(NULL));
        return;
    }
    printf("  %-20s %s, %s, %.1f GiB, %d multiprocessors, capability %d.%d\n", name, device.name, device.bus,
           (double)device.memory / (1 << 30), device.multiprocessors, device.major, device.minor);
    printf("  %-20s %s", "", device.uuid);
    if (device.numa_node >= 0)
        printf(", near NUMA node %d", device.numa_node);
    if (devices > 1)
        printf(", reaches the memory of: %s", peer_list(device.peers, peers));
    putchar('\n');
    if (device.through_host)
        printf("  %-20s kernels exchange with %s through memory of the host (cuda_host): no peer access\n", "",
               peer_list(device.through_host, peers));
    if (device.limits[0] != '\0')
        printf("  %-20s %s\n", "", device.limits);
}

void print_devices(void)
{
    int version = 0, devices = 0;
    const char *origin;

    printf("\nCUDA devices\n");
    if (hoop_device_driver(&version, &devices, &origin) != HOOP_OK) {
        printf("  %-20s %s\n", "none", hoop_last_error(NULL));
        return;
    }
    printf("  %-20s CUDA %d.%d, found as %s\n", "driver", version / 1000, version % 1000 / 10, origin);
    for (int ordinal = 0; ordinal < devices; ordinal++)
        print_device(ordinal, devices);
}

static void json_text(const char *key, const char *text)
{
    printf(", \"%s\": ", key);
    if (text[0] == '\0')
        fputs("null", stdout);
    else
        hoop_json_string(stdout, text);
}

static void json_bits(const char *key, uint64_t bits)
{
    const char *before = "";

    printf(", \"%s\": [", key);
    for (int i = 0; i < 64; i++)
        if (bits >> i & 1) {
            printf("%s%d", before, i);
            before = ", ";
        }
    putchar(']');
}

static void json_device(int ordinal)
{
    struct hoop_device device = {.size = sizeof(device)};

    printf("{\"ordinal\": %d", ordinal);
    if (hoop_device_info(ordinal, &device) != HOOP_OK) {
        fputs(", \"usable\": false", stdout);
        json_text("reason", hoop_last_error(NULL));
        putchar('}');
        return;
    }
    fputs(", \"usable\": true", stdout);
    json_text("name", device.name);
    json_text("uuid", device.uuid);
    json_text("bus", device.bus);
    printf(", \"memory_bytes\": %zu, \"multiprocessors\": %d, \"capability\": \"%d.%d\", \"numa_node\": ",
           device.memory, device.multiprocessors, device.major, device.minor);
    if (device.numa_node >= 0)
        printf("%d", device.numa_node);
    else
        fputs("null", stdout);
    json_bits("peers", device.peers);
    json_bits("through_host", device.through_host);
    json_text("limits", device.limits);
    putchar('}');
}

void json_devices(void)
{
    int version = 0, devices = 0;
    const char *origin;

    fputs("  \"cuda\": {\"usable\": ", stdout);
    if (hoop_device_driver(&version, &devices, &origin) != HOOP_OK) {
        fputs("false", stdout);
        json_text("reason", hoop_last_error(NULL));
        putchar('}');
        return;
    }
    printf("true, \"version\": \"%d.%d\"", version / 1000, version % 1000 / 10);
    json_text("origin", origin);
    fputs(", \"devices\": [", stdout);
    for (int ordinal = 0; ordinal < devices; ordinal++) {
        printf("%s\n    ", ordinal > 0 ? "," : "");
        json_device(ordinal);
    }
    fputs("]}", stdout);
}
