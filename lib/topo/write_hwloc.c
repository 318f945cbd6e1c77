// SPDX-License-Identifier: BSD-3-Clause
/* A topology as XML of hwloc 2, for lstopo and whoever else reads that.
 *
 * Packages, and groups for NUMA nodes that are parts of one, become a tree of sets of CPUs with cores and hardware threads at its leaves;
 * PCI hangs on them as it does here. What hwloc has no place for stands in info attributes named "hoop.…" of the object, which hwloc keeps and
 * our reader takes (source_hwloc_notes.c), so that what is read again is the same machine: facts in hoop's own text, references by gp_index.
 * hwloc has no machine without CPUs or memory: such are made up and marked so ("hoop.form").
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/facts.h"
#include "topo/write_hwloc.h"

enum { FIRST_GP = 2, MARGIN = 2 };

static const struct hoop_topo_node *at(const struct hoop_hwloc_writer *writer, int i)
{
    return &writer->topo->place[i].node;
}

static int gp_of(int node)
{
    return FIRST_GP + node;
}

/* ---- texts ---- */

static void indent(const struct hoop_hwloc_writer *writer, int depth)
{
    fprintf(writer->out, "%*s", depth * MARGIN, "");
}

static void put_set(const struct hoop_hwloc_writer *writer, const char *name, hwloc_const_bitmap_t set)
{
    char *text = NULL;

    if (hwloc_bitmap_asprintf(&text, set) >= 0)
        fprintf(writer->out, " %s=\"%s\"", name, text);
    free(text);
}

static void put_sets(const struct hoop_hwloc_writer *writer, hwloc_const_bitmap_t cpus, hwloc_const_bitmap_t numas)
{
    put_set(writer, "cpuset", cpus);
    put_set(writer, "complete_cpuset", cpus);
    put_set(writer, "nodeset", numas);
    put_set(writer, "complete_nodeset", numas);
}

static void put_info(const struct hoop_hwloc_writer *writer, int depth, const char *name, const char *value)
{
    if (*value == '\0')
        return;
    indent(writer, depth);
    fputs("<info", writer->out);
    hoop_xml_put(writer->out, "name", name);
    hoop_xml_put(writer->out, "value", value);
    fputs("/>\n", writer->out);
}

static void put_info_number(const struct hoop_hwloc_writer *writer, int depth, const char *name, long value)
{
    char text[24];

    snprintf(text, sizeof text, "%ld", value);
    if (value != 0)
        put_info(writer, depth, name, text);
}

static void put_info_set(const struct hoop_hwloc_writer *writer, int depth, const char *name, hwloc_const_bitmap_t set)
{
    indent(writer, depth);
    fprintf(writer->out, "<info name=\"%s\"", name);
    put_set(writer, "value", set);
    fputs("/>\n", writer->out);
}

static void put_facts(const struct hoop_hwloc_writer *writer, int depth, const void *of,
                      const struct hoop_fact_name *facts, int count)
{
    for (int i = 0; i < count; i++) {
        const struct hoop_topo_fact *fact = hoop_fact_in(of, &facts[i]);

        if (!hoop_fact_known(fact, &facts[i]))
            continue;
        indent(writer, depth);
        fprintf(writer->out, "<info name=\"hoop.%s\" value=\"", facts[i].name);
        hoop_fact_put(writer->out, fact);
        fputs("\"/>\n", writer->out);
    }
}

/* ---- what hwloc has no place for ---- */

static void put_gid(const struct hoop_hwloc_writer *writer, const struct hoop_topo_gid *gid, int depth)
{
    char text[192];
    int used = snprintf(text, sizeof text, "%d|%d|", gid->port, gid->index);

    for (int i = 0; i < 16; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%02x", gid->gid[i]);
    snprintf(text + used, sizeof text - (size_t)used, "|%s|%.100s", hoop_topo_gid_name(gid->type), gid->interface);
    put_info(writer, depth, "hoop.gid", text);
}

/* Links that are no way up, access, at the first of the two, and GIDs. */
static void put_ties(const struct hoop_hwloc_writer *writer, int node, int depth)
{
    const struct hoop_topo *topo = writer->topo;

    for (int i = 0; i < topo->links; i++) {
        const struct hoop_topo_link *link = &topo->link[i];

        if (link->a != node || at(writer, link->b)->uplink == i || at(writer, link->a)->uplink == i)
            continue;
        indent(writer, depth);
        fprintf(writer->out, "<info name=\"hoop.to\" value=\"%s|%d|%s|%d", hoop_topo_link_name(link->kind),
                gp_of(link->b), hoop_topo_source_name(link->source), link->current);
        for (int k = 0; k < HOOP_LINK_FACTS; k++)
            if (hoop_fact_known(hoop_fact_in(link, &hoop_link_facts[k]), &hoop_link_facts[k])) {
                fprintf(writer->out, "|%s=", hoop_link_facts[k].name);
                hoop_fact_put(writer->out, hoop_fact_in(link, &hoop_link_facts[k]));
            }
        fputs("\"/>\n", writer->out);
    }
    for (int i = 0; i < topo->accesses; i++) {
        if (topo->access[i].a != node)
            continue;
        indent(writer, depth);
        fprintf(writer->out, "<info name=\"hoop.access\" value=\"%d", gp_of(topo->access[i].b));
        for (int way = 0; way < HOOP_TOPO_PEER_WAYS; way++)
            fprintf(writer->out, "|%s", hoop_topo_peer_name((enum hoop_topo_peer)topo->access[i].way[way]));
        fputs("\"/>\n", writer->out);
    }
    for (int i = 0; i < topo->gids; i++)
        if (topo->gid[i].node == node)
            put_gid(writer, &topo->gid[i], depth);
}

static void put_cpu_model(const struct hoop_hwloc_writer *writer, const struct hoop_topo_node *node, int depth)
{
    put_info(writer, depth, "hoop.arch", node->cpu.arch);
    put_info(writer, depth, "hoop.vendor", node->cpu.vendor);
    put_info_number(writer, depth, "hoop.family", node->cpu.family);
    put_info_number(writer, depth, "hoop.cpu_model", node->cpu.model);
}

/* The rest of a node; box: what hwloc takes its sets from. */
static void put_notes(const struct hoop_hwloc_writer *writer, int i, int depth, int box)
{
    const struct hoop_topo_place *place = &writer->topo->place[i];
    const struct hoop_topo_node *node = &place->node;
    const bool device = node->kind >= HOOP_TOPO_HOST_BRIDGE;

    put_info(writer, depth, "hoop.source", hoop_topo_source_name(node->source));
    put_facts(writer, depth, node, hoop_node_facts, HOOP_NODE_FACTS);
    if (node->uplink >= 0) {
        const struct hoop_topo_link *link = &writer->topo->link[node->uplink];

        put_info(writer, depth, "hoop.link", hoop_topo_link_name(link->kind));
        put_info(writer, depth, "hoop.link_source", hoop_topo_source_name(link->source));
        put_info(writer, depth, "hoop.current", link->current ? "1" : "0");
        put_facts(writer, depth, link, hoop_link_facts, HOOP_LINK_FACTS);
    }
    if (device) {
        char parent[24];

        if (node->uplink < 0)
            put_info(writer, depth, "hoop.link", "none");
        if (node->name[0] == '\0' && !node->bus.known)
            put_info(writer, depth, "hoop.nameless", "1");

        snprintf(parent, sizeof parent, "%d", gp_of(node->parent));
        put_info(writer, depth, "hoop.parent", parent);
        put_info(writer, depth, "hoop.kind", hoop_topo_kind_name(node->kind));
        put_info(writer, depth, "hoop.name", node->name);
        put_info(writer, depth, "hoop.names", node->names);
        put_info(writer, depth, "hoop.model", node->model);
        put_info_number(writer, depth, "hoop.rdma", node->rdma);
        put_info_number(writer, depth, "hoop.virtual_function", node->virtual_function);
        put_info_number(writer, depth, "hoop.listed", node->listed);
        put_info_number(writer, depth, "hoop.adrift", place->adrift);
    }
    put_cpu_model(writer, node, depth);
    if (!hwloc_bitmap_isequal(place->cpus, writer->box[box].cpus))
        put_info_set(writer, depth, "hoop.cpus", place->cpus);
    if (!hwloc_bitmap_isequal(place->numas, writer->box[box].numas))
        put_info_set(writer, depth, "hoop.numas", place->numas);
    put_ties(writer, i, depth);
}

/* ---- I/O ---- */

static void put_os_device(struct hoop_hwloc_writer *writer, int depth, const char *name, int type)
{
    indent(writer, depth);
    fprintf(writer->out, "<object type=\"OSDev\" gp_index=\"%d\"", writer->gp++);
    hoop_xml_put(writer->out, "name", name);
    fprintf(writer->out, " osdev_type=\"%d\"/>\n", type);
}

/* hwloc's number of what a name is: 1 GPU, 2 network interface, 3 verbs device, 5 coprocessor. */
static int type_of(const struct hoop_topo_node *node, const char *name)
{
    if (node->kind == HOOP_TOPO_NIC)
        return node->rdma && strcmp(name, node->name) == 0 ? 3 : 2;
    return strncmp(name, "nvml", 4) == 0 || strncmp(name, "rsmi", 4) == 0 ? 1 : 5;
}

static void put_names(struct hoop_hwloc_writer *writer, const struct hoop_topo_node *node, int depth)
{
    const char *from = node->names;

    while (*from != '\0') {
        char name[128];
        const size_t length = strcspn(from, ",");

        snprintf(name, sizeof name, "%.*s", (int)length, from);
        if (*name != '\0')
            put_os_device(writer, depth, name, type_of(node, name));
        from += length + (from[length] == ',');
    }
}

static void put_pci(const struct hoop_hwloc_writer *writer, const struct hoop_topo_node *node)
{
    const double speed = node->uplink < 0 ? 0 : writer->topo->link[node->uplink].gigabytes_per_second.value;
    const long thousandths = (long)(speed * 1000 + 0.5); /* no locale's comma */

    fprintf(writer->out,
            " pci_busid=\"%04" PRIx32 ":%02x:%02x.%01x\" pci_type=\"%04x [%04x:%04x] [%04x:%04x] 00\" "
            "pci_link_speed=\"%ld.%03ld\"",
            node->bus.domain, node->bus.bus, node->bus.device, node->bus.function, node->pci_class, node->vendor,
            node->device, node->subsystem_vendor, node->subsystem_device, thousandths / 1000, thousandths % 1000);
}

/* The greatest number of a bus below a node. */
static int last_bus(const struct hoop_hwloc_writer *writer, int above, int last)
{
    for (int i = 0; i < writer->topo->nodes; i++)
        if (at(writer, i)->parent == above && at(writer, i)->bus.known) {
            last = at(writer, i)->bus.bus > last ? at(writer, i)->bus.bus : last;
            last = last_bus(writer, i, last);
        }
    return last;
}

/* The least number of a bus right below a bridge. */
static int first_bus(const struct hoop_hwloc_writer *writer, int above)
{
    int first = -1;

    for (int i = 0; i < writer->topo->nodes; i++)
        if (at(writer, i)->parent == above && at(writer, i)->bus.known && (first < 0 || at(writer, i)->bus.bus < first))
            first = at(writer, i)->bus.bus;
    return first < 0 ? at(writer, above)->bus.bus : first;
}

static void put_io_below(struct hoop_hwloc_writer *writer, int above, int box, int depth, int bridges);

static void put_io(struct hoop_hwloc_writer *writer, int i, int box, int depth, int bridges)
{
    const struct hoop_topo_node *node = at(writer, i);
    const bool bridge = node->kind <= HOOP_TOPO_PCI_BRIDGE, pci = bridge || node->bus.known;

    indent(writer, depth);
    fprintf(writer->out, "<object type=\"%s\" gp_index=\"%d\"", bridge ? "Bridge" : pci ? "PCIDev" : "OSDev", gp_of(i));
    if (bridge)
        fprintf(writer->out, " bridge_type=\"%d-1\" depth=\"%d\" bridge_pci=\"%04" PRIx32 ":[%02x-%02x]\"",
                node->kind == HOOP_TOPO_PCI_BRIDGE, bridges, node->bus.domain,
                node->kind == HOOP_TOPO_PCI_BRIDGE ? first_bus(writer, i) : node->bus.bus,
                last_bus(writer, i, node->bus.bus));
    if (pci && node->kind != HOOP_TOPO_HOST_BRIDGE)
        put_pci(writer, node);
    if (!pci) {
        hoop_xml_put(writer->out, "name", node->name[0] != '\0' ? node->name : node->label);
        fprintf(writer->out, " osdev_type=\"%d\"", type_of(node, node->name));
    }
    if (node->kind == HOOP_TOPO_SWITCH)
        fputs(" subtype=\"NVSwitch\"", writer->out);
    fputs(">\n", writer->out);
    put_info(writer, depth + 1, "PCIDevice", pci ? node->model : "");
    put_notes(writer, i, depth + 1, box);
    if (bridge)
        put_io_below(writer, i, box, depth + 1, bridges + 1);
    else if (pci)
        put_names(writer, node, depth + 1);
    indent(writer, depth);
    fputs("</object>\n", writer->out);
}

static void put_io_below(struct hoop_hwloc_writer *writer, int above, int box, int depth, int bridges)
{
    for (int i = 0; i < writer->topo->nodes; i++)
        if (at(writer, i)->parent == above && at(writer, i)->kind >= HOOP_TOPO_HOST_BRIDGE)
            put_io(writer, i, box, depth, bridges);
}

/* ---- CPUs and memory ---- */

static void put_memory(struct hoop_hwloc_writer *writer, int i, int box, int depth)
{
    const struct hoop_topo_node *node = at(writer, i), *gpu;
    hwloc_bitmap_t numas = hwloc_bitmap_alloc();

    if (numas == NULL)
        return;
    hwloc_bitmap_only(numas, (unsigned)node->number);
    indent(writer, depth);
    fprintf(writer->out, "<object type=\"NUMANode\" os_index=\"%d\" gp_index=\"%d\"", node->number, gp_of(i));
    put_sets(writer, writer->cpus[i], numas);
    if (node->memory.source != HOOP_TOPO_UNKNOWN)
        fprintf(writer->out, " local_memory=\"%.0f\"", node->memory.value);
    fputs(">\n", writer->out);
    for (int k = 0; k < writer->topo->nodes; k++)
        if ((gpu = at(writer, k))->memory_numa.source != HOOP_TOPO_UNKNOWN && gpu->memory_numa.value == node->number &&
            gpu->bus.known) {
            char bus[24];

            snprintf(bus, sizeof bus, "%04" PRIx32 ":%02x:%02x.%01x", gpu->bus.domain, gpu->bus.bus, gpu->bus.device,
                     gpu->bus.function);
            put_info(writer, depth + 1, "PCIBusID", bus);
        }
    put_notes(writer, i, depth + 1, box);
    indent(writer, depth);
    fputs("</object>\n", writer->out);
    hwloc_bitmap_free(numas);
}

int hoop_hwloc_box(const struct hoop_hwloc_writer *writer, hwloc_const_bitmap_t cpus)
{
    int found = 0;

    for (int i = 1; i < writer->boxes; i++)
        if (hwloc_bitmap_isincluded(cpus, writer->box[i].cpus) &&
            hwloc_bitmap_isincluded(writer->box[i].cpus, writer->box[found].cpus))
            found = i;
    return found;
}

/* Hardware threads that are left of a set, in a core or without. */
static void put_threads(struct hoop_hwloc_writer *writer, int box, int core, hwloc_const_bitmap_t all, int depth)
{
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc(), one = hwloc_bitmap_alloc();

    if (cpus == NULL || one == NULL || hwloc_bitmap_and(cpus, all, writer->left) != 0 || hwloc_bitmap_iszero(cpus))
        goto out;
    hwloc_bitmap_andnot(writer->left, writer->left, cpus);
    if (core >= 0) {
        indent(writer, depth++);
        fprintf(writer->out, "<object type=\"Core\" os_index=\"%d\" gp_index=\"%d\"", core, writer->gp++);
        put_sets(writer, cpus, writer->box[box].numas);
        fputs(">\n", writer->out);
    }
    for (int i = hwloc_bitmap_first(cpus); i >= 0; i = hwloc_bitmap_next(cpus, i)) {
        hwloc_bitmap_only(one, (unsigned)i);
        indent(writer, depth);
        fprintf(writer->out, "<object type=\"PU\" os_index=\"%d\" gp_index=\"%d\"", i, writer->gp++);
        put_sets(writer, one, writer->box[box].numas);
        fputs("/>\n", writer->out);
    }
    if (core >= 0) {
        indent(writer, --depth);
        fputs("</object>\n", writer->out);
    }
out:
    hwloc_bitmap_free(cpus);
    hwloc_bitmap_free(one);
}

/* Whom hwloc needs to know about the whole file. */
static void put_machine(const struct hoop_hwloc_writer *writer, int depth)
{
    const struct hoop_topo *topo = writer->topo;
    char form[64];

    snprintf(form, sizeof form, "1%s%s%s", writer->no_cpus ? " cpus-made-up" : "",
             writer->no_numas ? " memory-made-up" : "", topo->cores == 0 ? " no-cores" : "");
    put_info(writer, depth, "hoop.form", form);
    put_info(writer, depth, "hoop.origin", topo->origin);
    put_info_number(writer, depth, "hoop.switches", topo->switches);
    put_info(writer, depth, "Architecture", at(writer, 0)->cpu.arch);
    for (int i = 0; i < topo->notes; i++)
        put_info(writer, depth, "hoop.remark", topo->note[i]);
}

static void put_package(const struct hoop_hwloc_writer *writer, const struct hoop_topo_node *node, int depth)
{
    put_info(writer, depth, "CPUModel", node->model);
    put_info(writer, depth, "CPUVendor", node->cpu.vendor);
    put_info_number(writer, depth, "CPUFamilyNumber", node->cpu.family);
    put_info_number(writer, depth, "CPUModelNumber", node->cpu.model);
}

static void open_box(struct hoop_hwloc_writer *writer, int i, int depth)
{
    const struct hoop_hwloc_box *box = &writer->box[i];

    indent(writer, depth);
    fprintf(writer->out, "<object type=\"%s\"", i == 0 ? "Machine" : box->node >= 0 ? "Package" : "Group");
    if (box->node >= 0)
        fprintf(writer->out, " os_index=\"%d\" gp_index=\"%d\"", at(writer, box->node)->number, gp_of(box->node));
    else
        fprintf(writer->out, " gp_index=\"%d\" kind=\"0\" subkind=\"0\"", writer->gp++);
    put_sets(writer, box->cpus, box->numas);
    if (i == 0) {
        hwloc_bitmap_t allowed = hwloc_bitmap_dup(writer->topo->allowed);

        if (allowed != NULL && hwloc_bitmap_and(allowed, allowed, box->cpus) == 0)
            put_set(writer, "allowed_cpuset", hwloc_bitmap_iszero(allowed) ? box->cpus : allowed);
        put_set(writer, "allowed_nodeset", box->numas);
        hwloc_bitmap_free(allowed);
    }
    fputs(">\n", writer->out);
}

static void put_box(struct hoop_hwloc_writer *writer, int i, int depth)
{
    const struct hoop_hwloc_box *box = &writer->box[i];

    open_box(writer, i, depth);
    if (i == 0)
        put_machine(writer, depth + 1);
    else if (box->node >= 0)
        put_package(writer, at(writer, box->node), depth + 1);
    if (box->node >= 0)
        put_notes(writer, box->node, depth + 1, i);
    for (int k = 0; k < writer->topo->nodes; k++)
        if (at(writer, k)->kind == HOOP_TOPO_NUMA && writer->home[k] == i)
            put_memory(writer, k, i, depth + 1);
    for (int k = 1; k < writer->boxes; k++)
        if (writer->box[k].above == i)
            put_box(writer, k, depth + 1);
    for (int k = 0; k < writer->topo->cores; k++)
        if (hoop_hwloc_box(writer, writer->topo->core[k]) == i)
            put_threads(writer, i, k, writer->topo->core[k], depth + 1);
    put_threads(writer, i, -1, box->cpus, depth + 1);
    for (int k = 0; k < writer->topo->nodes; k++)
        if (at(writer, k)->kind < HOOP_TOPO_HOST_BRIDGE && writer->home[k] == i)
            put_io_below(writer, k, i, depth + 1, 0);
    indent(writer, depth);
    fputs("</object>\n", writer->out);
}

/* NVLinks between PCI functions, as hwloc's own matrix; who reads the notes does not need it. */
static void put_matrix(const struct hoop_hwloc_writer *writer)
{
    const struct hoop_topo *topo = writer->topo;
    int *member = hoop_calloc((size_t)topo->nodes, sizeof *member), members = 0;

    for (int i = 0; i < topo->links && member != NULL; i++)
        if (topo->link[i].kind == HOOP_TOPO_LINK_NVLINK && at(writer, topo->link[i].a)->bus.known &&
            at(writer, topo->link[i].b)->bus.known && at(writer, topo->link[i].a)->kind >= HOOP_TOPO_GPU &&
            topo->link[i].gigabytes_per_second.source != HOOP_TOPO_UNKNOWN)
            member[topo->link[i].a] = member[topo->link[i].b] = 1;
    for (int i = 0; i < topo->nodes && member != NULL; i++)
        members += member[i];
    if (members == 0) {
        hoop_free(member);
        return;
    }
    fprintf(writer->out,
            "  <distances2 type=\"PCIDev\" nbobjs=\"%d\" kind=\"25\" name=\"NVLinkBandwidth\" indexing=\"gp\">\n",
            members);
    for (int i = 0; i < topo->nodes; i++) {
        char text[24];

        const int length = snprintf(text, sizeof text, "%d ", gp_of(i));
        if (member[i])
            fprintf(writer->out, "    <indexes length=\"%d\">%s</indexes>\n", length, text);
    }
    for (int i = 0; i < topo->nodes; i++)
        for (int k = 0; k < topo->nodes && member[i]; k++) {
            double speed = i == k ? 1000 : 0; /* as hwloc has it of a GPU and itself */
            char text[24];

            for (int j = 0; j < topo->links && member[k]; j++)
                if (topo->link[j].kind == HOOP_TOPO_LINK_NVLINK &&
                    ((topo->link[j].a == i && topo->link[j].b == k) || (topo->link[j].a == k && topo->link[j].b == i)))
                    speed += topo->link[j].gigabytes_per_second.value;
            const int length = snprintf(text, sizeof text, "%.0f ", speed * 1000);
            if (member[k])
                fprintf(writer->out, "    <u64values length=\"%d\">%s</u64values>\n", length, text);
        }
    fputs("  </distances2>\n", writer->out);
    hoop_free(member);
}

void hoop_hwloc_put(struct hoop_hwloc_writer *writer)
{
    writer->gp = gp_of(writer->topo->nodes);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology "
          "version=\"2.0\">\n",
          writer->out);
    put_box(writer, 0, 1);
    put_matrix(writer);
    fputs("</topology>\n", writer->out);
}
