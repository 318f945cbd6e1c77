// SPDX-License-Identifier: BSD-3-Clause
/* Which objects of hwloc hold the CPUs of a topology: what write_hwloc.c writes.
 *
 * hwloc wants sets of CPUs that are parts of one another or share none, and memory where its CPUs are. A machine that is otherwise is refused. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/write_hwloc.h"

static const struct hoop_topo_node *at(const struct hoop_hwloc_writer *writer, int i)
{
    return &writer->topo->place[i].node;
}

static enum hoop_status no_memory(void)
{
    return hoop_fail(HOOP_ERR_MEMORY, "no memory to write a topology");
}

static enum hoop_status no_form(const struct hoop_hwloc_writer *writer, int i)
{
    return hoop_fail(HOOP_ERR_UNSUPPORTED,
                     "XML of hwloc has no form for this machine: %s below %s, or with CPUs that are partly elsewhere; "
                     "--export hoop has one",
                     at(writer, i)->label,
                     at(writer, i)->parent < 0 ? "nothing" : at(writer, at(writer, i)->parent)->label);
}

/* Sets of CPUs by node, those of the machine with all others in it; where nobody has any, one is made up for each NUMA node. */
static enum hoop_status take_cpus(struct hoop_hwloc_writer *writer)
{
    const struct hoop_topo *topo = writer->topo;
    unsigned next = 0;

    for (int i = 0; i < topo->nodes && at(writer, i)->kind < HOOP_TOPO_HOST_BRIDGE; i++)
        if ((writer->cpus[i] = hwloc_bitmap_dup(topo->place[i].cpus)) == NULL ||
            hwloc_bitmap_or(writer->cpus[0], writer->cpus[0], writer->cpus[i]) != 0)
            return no_memory();
    for (int i = 0; i < topo->cores; i++)
        if (hwloc_bitmap_or(writer->cpus[0], writer->cpus[0], topo->core[i]) != 0)
            return no_memory();
    if (hwloc_bitmap_last(writer->cpus[0]) < 0 && !hwloc_bitmap_iszero(writer->cpus[0])) /* endless */
        return no_form(writer, 0);
    writer->no_cpus = hwloc_bitmap_iszero(writer->cpus[0]);
    for (int i = 0; i < topo->nodes && writer->no_cpus; i++)
        if ((at(writer, i)->kind == HOOP_TOPO_NUMA || at(writer, i)->kind == HOOP_TOPO_PACKAGE) &&
            (hwloc_bitmap_set(writer->cpus[i], next) != 0 ||
             hwloc_bitmap_set(writer->cpus[at(writer, i)->parent], next) != 0 ||
             hwloc_bitmap_set(writer->cpus[0], next++) != 0))
            return no_memory();
    return writer->no_cpus && next == 0 && hwloc_bitmap_set(writer->cpus[0], 0) != 0 ? no_memory() : HOOP_OK;
}

/* Only what hwloc can nest: memory in packages or the machine, I/O below those and below bridges. */
static bool fits(const struct hoop_hwloc_writer *writer, int i)
{
    const enum hoop_topo_kind kind = at(writer, i)->kind;

    if (i == 0 || kind == HOOP_TOPO_MACHINE)
        return i == 0;
    const enum hoop_topo_kind above = at(writer, at(writer, i)->parent)->kind;
    if (kind == HOOP_TOPO_PACKAGE)
        return above == HOOP_TOPO_MACHINE && !hwloc_bitmap_iszero(writer->cpus[i]);
    if (kind == HOOP_TOPO_NUMA)
        return above < HOOP_TOPO_NUMA && hwloc_bitmap_isincluded(writer->cpus[i], writer->cpus[at(writer, i)->parent]);
    return above < HOOP_TOPO_HOST_BRIDGE ||
           (kind > HOOP_TOPO_HOST_BRIDGE && above <= HOOP_TOPO_PCI_BRIDGE && at(writer, i)->bus.known) ||
           (kind > HOOP_TOPO_PCI_BRIDGE && above <= HOOP_TOPO_PCI_BRIDGE);
}

static enum hoop_status add_box(struct hoop_hwloc_writer *writer, int node, hwloc_const_bitmap_t cpus)
{
    struct hoop_hwloc_box *box = &writer->box[writer->boxes];

    *box = (struct hoop_hwloc_box){.node = node, .above = -1, .cpus = cpus, .numas = hwloc_bitmap_alloc()};
    if (box->numas == NULL)
        return no_memory();
    writer->boxes++;
    return HOOP_OK;
}

/* The box of a NUMA node's CPUs, made if there is none; memory without CPUs is where its parent is. */
static enum hoop_status find_home(struct hoop_hwloc_writer *writer, int i)
{
    const int above = writer->home[at(writer, i)->parent];

    writer->home[i] = above;
    if (hwloc_bitmap_iszero(writer->cpus[i]) || hwloc_bitmap_isequal(writer->cpus[i], writer->box[above].cpus))
        return HOOP_OK;
    for (int k = 1; k < writer->boxes; k++)
        if (writer->box[k].node < 0 && hwloc_bitmap_isequal(writer->cpus[i], writer->box[k].cpus)) {
            writer->home[i] = k;
            return HOOP_OK;
        }
    writer->home[i] = writer->boxes;
    return add_box(writer, -1, writer->cpus[i]);
}

static enum hoop_status make_boxes(struct hoop_hwloc_writer *writer)
{
    enum hoop_status status = HOOP_OK;

    for (int i = 0; i < writer->topo->nodes && status == HOOP_OK; i++) {
        const enum hoop_topo_kind kind = at(writer, i)->kind;

        if (!fits(writer, i))
            return no_form(writer, i);
        if (kind == HOOP_TOPO_MACHINE || kind == HOOP_TOPO_PACKAGE) {
            writer->home[i] = writer->boxes;
            status = add_box(writer, i, writer->cpus[i]);
        } else if (kind == HOOP_TOPO_NUMA) {
            status = find_home(writer, i);
        }
    }
    return status;
}

/* The smallest box around box i that is not equal to one before it; false: one is partly in it. */
static bool nest(struct hoop_hwloc_writer *writer, int i)
{
    const struct hoop_hwloc_box *box = writer->box;
    int above = 0;

    for (int k = 1; k < writer->boxes; k++) {
        if (k == i || !hwloc_bitmap_intersects(box[i].cpus, box[k].cpus))
            continue;
        const bool inside = hwloc_bitmap_isincluded(box[i].cpus, box[k].cpus);
        if (!inside && !hwloc_bitmap_isincluded(box[k].cpus, box[i].cpus))
            return false;
        if (inside && (!hwloc_bitmap_isequal(box[i].cpus, box[k].cpus) || k < i) &&
            hwloc_bitmap_isincluded(box[k].cpus, box[above].cpus))
            above = k;
    }
    writer->box[i].above = above;
    return true;
}

/* Memory is near the box that it hangs on, those in that box, and those around it. */
static enum hoop_status spread_memory(struct hoop_hwloc_writer *writer)
{
    int memories = 0;

    for (int i = 0; i < writer->topo->nodes; i++) {
        if (at(writer, i)->kind != HOOP_TOPO_NUMA)
            continue;
        memories++;
        for (int k = 0; k < writer->boxes; k++) {
            bool near = false;

            for (int up = k; up >= 0 && !near; up = writer->box[up].above)
                near = up == writer->home[i];
            for (int up = writer->home[i]; up >= 0 && !near; up = writer->box[up].above)
                near = up == k;
            if (near && hwloc_bitmap_set(writer->box[k].numas, (unsigned)at(writer, i)->number) != 0)
                return no_memory();
        }
    }
    writer->no_numas = memories == 0;
    for (int k = 0; k < writer->boxes && writer->no_numas; k++)
        if (hwloc_bitmap_set(writer->box[k].numas, 0) != 0)
            return no_memory();
    return HOOP_OK;
}

static enum hoop_status prepare(struct hoop_hwloc_writer *writer)
{
    const size_t nodes = (size_t)writer->topo->nodes;

    writer->cpus = hoop_calloc(nodes, sizeof *writer->cpus);
    writer->home = hoop_calloc(nodes, sizeof *writer->home);
    writer->box = hoop_calloc(nodes, sizeof *writer->box);
    if (writer->cpus == NULL || writer->home == NULL || writer->box == NULL)
        return no_memory();
    enum hoop_status status = take_cpus(writer);
    if (status == HOOP_OK)
        status = make_boxes(writer);
    for (int i = 1; i < writer->boxes && status == HOOP_OK; i++)
        if (!nest(writer, i))
            status = no_form(writer, writer->box[i].node < 0 ? 0 : writer->box[i].node);
    if (status == HOOP_OK)
        status = spread_memory(writer);
    if (status == HOOP_OK && (writer->left = hwloc_bitmap_dup(writer->cpus[0])) == NULL)
        status = no_memory();
    return status;
}

static void release(struct hoop_hwloc_writer *writer)
{
    for (int i = 0; i < writer->topo->nodes && writer->cpus != NULL; i++)
        hwloc_bitmap_free(writer->cpus[i]);
    for (int i = 0; i < writer->boxes; i++)
        hwloc_bitmap_free(writer->box[i].numas);
    hwloc_bitmap_free(writer->left);
    hoop_free(writer->cpus);
    hoop_free(writer->home);
    hoop_free(writer->box);
}

enum hoop_status hoop_topo_write_hwloc(const struct hoop_topo *topo, FILE *file)
{
    struct hoop_hwloc_writer writer = {.topo = topo, .out = file};

    if (topo == NULL || file == NULL)
        return hoop_fail(HOOP_ERR_ARG, "no topology to write, or no file to write to");
    enum hoop_status status = prepare(&writer);
    if (status == HOOP_OK)
        hoop_hwloc_put(&writer);
    release(&writer);
    if (status == HOOP_OK && (fflush(file) != 0 || ferror(file)))
        status = hoop_fail_errno(HOOP_ERR_SYSTEM, "the topology cannot be written");
    return status;
}
