// SPDX-License-Identifier: BSD-3-Clause
/* Ports of verbs devices: what /sys tells of them, and their GIDs (the addresses by which connections are made) as texts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/facts.h"
#include "topo/sysfs.h"

enum { MOST_PORTS = 8, MOST_GIDS = 256, GID_TEXT = 39 };

static const char *const types[HOOP_TOPO_GID_TYPES] = {"?", "IB", "RoCE v1", "RoCE v2"};

const char *hoop_topo_gid_name(enum hoop_topo_gid_type type)
{
    return type < HOOP_TOPO_GID_TYPES ? types[type] : "?";
}

const struct hoop_topo_gid *hoop_topo_gid(const struct hoop_topo *topo, int i)
{
    return topo != NULL && i >= 0 && i < topo->gids ? &topo->gid[i] : NULL;
}

bool hoop_gid_parse(const char *text, uint8_t gid[16])
{
    for (int i = 0; i < 16; i++) {
        char two[3] = {0}, *end;

        if (i > 0 && i % 2 == 0 && *text == ':')
            text++;
        two[0] = text[0];
        two[1] = text[0] == '\0' ? '\0' : text[1];
        gid[i] = (uint8_t)strtoul(two, &end, 16);
        if (end != two + 2 || two[0] == '-' || two[0] == '+' || two[0] == ' ')
            return false;
        text += 2;
    }
    return *text == '\0';
}

enum hoop_topo_gid_type hoop_gid_type(const char *name)
{
    int type = HOOP_TOPO_GID_TYPES - 1;

    while (type > 0 && strcmp(name, types[type]) != 0)
        type--;
    return (enum hoop_topo_gid_type)type;
}

struct port {
    struct hoop_sysfs *sysfs;
    struct hoop_topo *topo;
    int node, number;
    bool ethernet;
    const char *ports; /* the folder that has all of them */
    char folder[HOOP_SYSFS_PATH + 112];
};

static int number_of(const char *name, long most)
{
    char *end;
    const long number = strtol(name, &end, 10);

    return end == name || *end != '\0' || number < 0 || number > most ? -1 : (int)number;
}

/* One entry of the table; those of zeros are empty, and reading the type of an empty one fails. */
static enum hoop_status read_gid(void *user, const char *name)
{
    struct port *port = user;
    struct hoop_topo_gid gid = {
        .node = port->node, .port = port->number, .index = number_of(name, 65535), .interface = ""};
    static const uint8_t empty[16];
    char file[64], interface[64] = "";

    snprintf(file, sizeof file, "gids/%.20s", name);
    if (gid.index < 0 || hoop_sysfs_read_in(port->sysfs, port->folder, file) <= 0 ||
        !hoop_gid_parse(port->sysfs->text, gid.gid) || memcmp(gid.gid, empty, sizeof empty) == 0)
        return HOOP_OK;
    snprintf(file, sizeof file, "gid_attrs/types/%.20s", name);
    if (hoop_sysfs_read_in(port->sysfs, port->folder, file) > 0)
        gid.type = strcmp(port->sysfs->text, "RoCE v2") == 0      ? HOOP_TOPO_GID_ROCE_2
                   : strcmp(port->sysfs->text, "IB/RoCE v1") != 0 ? HOOP_TOPO_GID_UNKNOWN
                   : port->ethernet                               ? HOOP_TOPO_GID_ROCE_1
                                                                  : HOOP_TOPO_GID_IB;
    snprintf(file, sizeof file, "gid_attrs/ndevs/%.20s", name);
    if (hoop_sysfs_read_in(port->sysfs, port->folder, file) > 0 && strchr(port->sysfs->text, '|') == NULL)
        snprintf(interface, sizeof interface, "%.63s", port->sysfs->text);
    gid.interface = interface;
    return hoop_topo_add_gid(port->topo, &gid);
}

static enum hoop_status read_port(void *user, const char *name)
{
    struct port port = *(const struct port *)user;
    struct hoop_topo_node *node = &port.topo->place[port.node].node;
    char folder[HOOP_SYSFS_PATH + 192];

    port.number = number_of(name, MOST_PORTS);
    if (port.number < 1)
        return HOOP_OK;
    snprintf(port.folder, sizeof port.folder, "%s/%d", port.ports, port.number);
    if (hoop_sysfs_read_in(port.sysfs, port.folder, "link_layer") > 0) {
        port.ethernet = strcmp(port.sysfs->text, "Ethernet") == 0;
        if (port.number == 1 && (port.ethernet || strcmp(port.sysfs->text, "InfiniBand") == 0))
            node->port_layer = (struct hoop_topo_fact){port.ethernet ? 2 : 1, HOOP_TOPO_SYSFS};
    }
    if (port.number == 1 && hoop_sysfs_read_in(port.sysfs, port.folder, "state") > 0 && port.sysfs->text[0] >= '1' &&
        port.sysfs->text[0] <= '9' && port.sysfs->text[1] == ':')
        node->port_state = (struct hoop_topo_fact){port.sysfs->text[0] - '0', HOOP_TOPO_SYSFS};
    snprintf(folder, sizeof folder, "%s/gids", port.folder);
    return hoop_sysfs_list(port.sysfs, folder, MOST_GIDS, read_gid, &port);
}

enum hoop_status hoop_sysfs_read_verbs(struct hoop_sysfs *sysfs, struct hoop_topo *topo, int node, const char *path)
{
    char ports[HOOP_SYSFS_PATH + 96];
    struct port device = {.sysfs = sysfs, .topo = topo, .node = node, .ports = ports};

    snprintf(ports, sizeof ports, "%s/infiniband/%.60s/ports", path, topo->place[node].node.name);
    return hoop_sysfs_list(sysfs, ports, MOST_PORTS, read_port, &device);
}
