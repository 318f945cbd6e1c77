// SPDX-License-Identifier: BSD-3-Clause
/* A libnvidia-ml.so.1 for the tests of the topology, with the devices of topo_driver.c. What is joined to what comes in
 * NVML_LINKS: "0-1:4 0-s:2" for four links between devices 0 and 1, two from 0 to a switch. NVML_P2P: "0-1:22552" for what NVML answers of reads,
 * writes, NVLink, atomics and PCIe between them; none: it does not know.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define NVML(symbol) __attribute__((visibility("default"))) int symbol

struct pci {
    char short_id[16];
    unsigned domain, bus, device, ids, subsystem;
    char id[32];
};

struct field {
    unsigned field, scope;
    long long timestamp, latency;
    int type, result;
    unsigned long long value;
};

static int handles[16];

/* What is at the other end of a link: a device, -2: the switch, -1: it is down. */
static int other_end(const int *handle, unsigned wanted)
{
    const int self = (int)(handle - handles);
    const char *at = getenv("NVML_LINKS");
    unsigned link = 0;
    char to;
    int from, count, used;

    for (; at && sscanf(at, " %d-%c:%d%n", &from, &to, &count, &used) == 3; at += used) {
        const int peer = to == 's' ? -2 : to - '0';
        if (from != self && peer != self)
            continue;
        if (wanted < link + (unsigned)count)
            return from == self ? peer : from;
        link += (unsigned)count;
    }
    return -1;
}

NVML(nvmlInit_v2)(void)
{
    return getenv("NVML_LINKS") ? 0 : 9;
}

NVML(nvmlShutdown)(void)
{
    return 0;
}

NVML(nvmlDeviceGetHandleByPciBusId_v2)(const char *text, void **device)
{
    unsigned domain, bus;

    if (sscanf(text, "%x:%x:00.0", &domain, &bus) != 2 || domain != 0 || bus < 0xa0 || bus > 0xaf)
        return 6;
    *device = &handles[bus - 0xa0];
    return 0;
}

NVML(nvmlDeviceGetNvLinkState)(void *device, unsigned link, int *up)
{
    *up = other_end(device, link) != -1;
    return link < 18 ? 0 : 2;
}

NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2)(void *device, unsigned link, struct pci *pci)
{
    const int other = other_end(device, link);

    memset(pci, 0, sizeof *pci);
    pci->bus = other == -2 ? 0xe0 : 0xa0 + (unsigned)other;
    return other == -1 ? 2 : 0;
}

NVML(nvmlDeviceGetNvLinkRemoteDeviceType)(void *device, unsigned link, int *type)
{
    *type = other_end(device, link) == -2 ? 2 : 0;
    return 0;
}

NVML(nvmlDeviceGetFieldValues)(void *device, int count, struct field *field)
{
    (void)device;
    field->result = count == 1 && field->field == 90 ? 0 : 2;
    field->value = 25000;
    return 0;
}

NVML(nvmlDeviceGetP2PStatus)(void *device, void *other, int way, int *status)
{
    const char *at = getenv("NVML_P2P");
    const int a = (int)((int *)device - handles), b = (int)((int *)other - handles);
    int from, to, used;
    char answers[8];

    for (; at && sscanf(at, " %d-%d:%5[0-9]%n", &from, &to, answers, &used) == 3; at += used)
        if ((from == a && to == b) || (from == b && to == a)) {
            *status = answers[way] - '0';
            return way < 0 || way > 4 ? 2 : 0;
        }
    return 2;
}
