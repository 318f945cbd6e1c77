// SPDX-License-Identifier: BSD-3-Clause
/* NVLinks that hwloc knows: a matrix of MB/s between GPUs, fabric switches and, on POWER, packages.
 *
 * No matrix means that nobody looked, not that there is no NVLink. The number of links is not in it: it follows from
 * the speed of one link of that generation of GPUs, and where the id does not tell the generation it stays unknown.
 * Links between switches are not recorded; whoever reads the graph takes all switches as one fabric. */
#include "topo/model.h"

/* The PCI function, package or other object with a node that a column of the matrix stands for. */
static int column_node(hwloc_obj_t object)
{
    if (object != NULL && object->type == HWLOC_OBJ_OS_DEVICE)
        object = object->parent;
    return object == NULL ? -1 : (int)(intptr_t)object->userdata - 1;
}

/* Links side by side; a remainder means that the device does not run at the rate we know. */
static struct hoop_topo_fact count_links(const struct hoop_topo *topo, int a, int b, double speed)
{
    const struct hoop_topo_node *node_a = &topo->place[a].node, *node_b = &topo->place[b].node;
    const double rate = hoop_topo_nvlink_rate(node_a->kind == HOOP_TOPO_GPU ? node_a->device : node_b->device);
    const double count = rate > 0 ? speed / rate : 0;

    if (count < 1 || count > 64 || count != (int)count)
        return (struct hoop_topo_fact){0, HOOP_TOPO_UNKNOWN};
    return (struct hoop_topo_fact){count, HOOP_TOPO_DEVICE_ID};
}

static enum hoop_status add_matrix(struct hoop_topo *topo, const struct hwloc_distances_s *matrix,
                                   enum hoop_topo_source source)
{
    const unsigned n = matrix->nbobjs;
    enum hoop_status status = HOOP_OK;

    for (unsigned i = 0; i < n; i++)
        for (unsigned j = i + 1; status == HOOP_OK && j < n; j++) {
            const int a = column_node(matrix->objs[i]), b = column_node(matrix->objs[j]);
            const double speed = (double)matrix->values[i * n + j] / 1000;

            if (a < 0 || b < 0 || a == b || speed <= 0)
                continue;
            const struct hoop_topo_link link = {.kind = HOOP_TOPO_LINK_NVLINK,
                                                .a = a,
                                                .b = b,
                                                .source = source,
                                                .count = count_links(topo, a, b, speed),
                                                .gigabytes_per_second = {speed, source}};
            status = hoop_topo_join(topo, &link);
        }
    return status;
}

enum hoop_status hoop_topo_read_nvlinks(struct hoop_topo *topo, hwloc_topology_t hwloc, enum hoop_topo_source source)
{
    struct hwloc_distances_s *matrix = NULL;
    unsigned matrices = 1;

    if (hwloc_distances_get_by_name(hwloc, "NVLinkBandwidth", &matrices, &matrix, 0) != 0 || matrices < 1 ||
        matrix == NULL)
        return HOOP_OK;
    const enum hoop_status status = add_matrix(topo, matrix, source);
    hwloc_distances_release(hwloc, matrix);
    return status;
}
