// SPDX-License-Identifier: BSD-3-Clause
/* A picture of the machine: a tree that grows from left to right, sockets and NUMA nodes first, then PCI switches, then devices, each with
 * the speed of its link; beside it what joins the GPUs: a grid of the links between them, or a bar for the switches of a fabric.
 *
 * Bridges with one thing below them are left out, as they decide nothing: a port, or a root port. */
#include <stdlib.h>
#include <string.h>

#include "show.h"

enum {
    BOX_WIDTH = 190,
    BOX_HEIGHT = 34,
    STEP_X = 286,
    STEP_Y = 44,
    MARGIN = 20,
    HEAD = 56,
    CELL = 30,
    LEAST_GRID = 240
};

struct item {
    int node, above; /* above: item; -1 for the machine */
    int depth;
    double y;
};

struct picture {
    const struct hoop_topo *topo;
    const bool *shown;
    FILE *out;
    struct item *item;
    int items, rows, depth;
};

static const struct hoop_topo_node *node_of(const struct picture *picture, int item)
{
    return hoop_topo_node(picture->topo, picture->item[item].node);
}

static bool is_leaf(const struct picture *picture, int i)
{
    const struct hoop_topo_node *node = hoop_topo_node(picture->topo, i);

    if (!is_shown(picture->shown, i) || node->virtual_function)
        return false;
    return node->kind == HOOP_TOPO_GPU || (node->kind == HOOP_TOPO_NIC && (node->rdma || node->name[0] != '\0')) ||
           (node->kind == HOOP_TOPO_PCI_DEVICE && node->pci_class == 0);
}

/* Leaves below a node, itself included. */
static int leaves(const struct picture *picture, int node)
{
    const struct hoop_topo_node *child;
    int count = is_leaf(picture, node);

    for (int i = 0; (child = hoop_topo_node(picture->topo, i)) != NULL; i++)
        if (child->parent == node)
            count += leaves(picture, i);
    return count;
}

static int branches(const struct picture *picture, int node)
{
    const struct hoop_topo_node *child;
    int count = 0;

    for (int i = 0; (child = hoop_topo_node(picture->topo, i)) != NULL; i++)
        count += child->parent == node && leaves(picture, i) > 0;
    return count;
}

static bool is_drawn(const struct picture *picture, int i)
{
    switch (hoop_topo_node(picture->topo, i)->kind) {
    case HOOP_TOPO_MACHINE:
    case HOOP_TOPO_PACKAGE:
    case HOOP_TOPO_NUMA:
        return true;
    case HOOP_TOPO_HOST_BRIDGE:
    case HOOP_TOPO_PCI_BRIDGE:
        return branches(picture, i) > 1;
    default:
        return is_leaf(picture, i);
    }
}

/* Lay out a node and what is below it; the node comes beside the middle of that. */
static void lay_out(struct picture *picture, int node, int above, int depth)
{
    const struct hoop_topo_node *child;
    int mine = above;
    const int first = picture->rows;

    if (is_drawn(picture, node)) {
        mine = picture->items++;
        picture->item[mine] = (struct item){.node = node, .above = above, .depth = depth};
        picture->depth = depth > picture->depth ? depth : picture->depth;
        depth++;
    } else if (leaves(picture, node) == 0) {
        return;
    }
    for (int i = 0; (child = hoop_topo_node(picture->topo, i)) != NULL; i++)
        if (child->parent == node && child->kind != HOOP_TOPO_SWITCH)
            lay_out(picture, i, mine, depth);
    if (mine == above)
        return;
    if (picture->rows == first) /* nothing below: a row of its own */
        picture->rows++;
    picture->item[mine].y = HEAD + STEP_Y * (first + picture->rows - 1) / 2.0;
}

static void put_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        default:
            fputc((unsigned char)*text < ' ' ? '?' : *text, out);
            break;
        }
}

static const char *colour_of(const struct hoop_topo_node *node)
{
    static const char *const colours[HOOP_TOPO_KINDS] = {"#dfe3e8", "#cfd8e3", "#e6edf5", "#f2e8cf", "#f2e8cf",
                                                         "#bfe3c0", "#f6cfc4", "#d9c8ec", "#eeeeee"};

    return colours[node->kind];
}

/* What is worth a second line. */
static void describe(const struct picture *picture, int i, char *text, size_t size)
{
    const struct hoop_topo_node *node = hoop_topo_node(picture->topo, i);
    char list[LIST_TEXT] = "";

    switch (node->kind) {
    case HOOP_TOPO_NUMA:
        hoop_topo_cpu_list(picture->topo, i, list, sizeof list);
        snprintf(text, size, "%s%.28s%s",
                 list[0] != '\0'                     ? "CPUs "
                 : hoop_topo_cpus(picture->topo) > 0 ? "no CPUs"
                                                     : "CPUs ?",
                 list, strlen(list) > 28 ? " …" : "");
        break;
    case HOOP_TOPO_MACHINE:
    case HOOP_TOPO_PACKAGE:
        snprintf(text, size, "%.32s", node->model);
        break;
    case HOOP_TOPO_HOST_BRIDGE:
        snprintf(text, size, "PCI bus %04x:%02x", node->bus.domain, node->bus.bus);
        break;
    default:
        if (node->bus.known)
            snprintf(text, size, "%04x:%02x:%02x.%x %.16s", node->bus.domain, node->bus.bus, node->bus.device,
                     node->bus.function, node->kind == HOOP_TOPO_PCI_BRIDGE ? "" : node->name);
        else
            snprintf(text, size, "%.32s", node->name);
        break;
    }
}

static const char *title_of(const struct hoop_topo_node *node)
{
    if (node->kind == HOOP_TOPO_PCI_BRIDGE)
        return "PCI switch";
    return node->kind == HOOP_TOPO_HOST_BRIDGE ? "host bridge" : node->label;
}

static double x_of(int depth)
{
    return MARGIN + (double)STEP_X * depth;
}

/* The slowest PCI link from a node up to the next one that is drawn, since bridges in between are not; one without a speed if none is known;
 * NULL: no PCI link is on the way. */
static const struct hoop_topo_link *slowest_link(const struct hoop_topo *topo, int node, int above)
{
    const struct hoop_topo_link *slowest = NULL;

    for (int at = node; at >= 0 && at != above; at = hoop_topo_node(topo, at)->parent) {
        const struct hoop_topo_link *link = hoop_topo_link(topo, hoop_topo_node(topo, at)->uplink);

        if (link == NULL || link->kind != HOOP_TOPO_LINK_PCI)
            continue;
        const bool known = link->gigabytes_per_second.source != HOOP_TOPO_UNKNOWN;
        if (slowest == NULL || (known && (slowest->gigabytes_per_second.source == HOOP_TOPO_UNKNOWN ||
                                          link->gigabytes_per_second.value < slowest->gigabytes_per_second.value)))
            slowest = link;
    }
    return slowest;
}

static void draw_edge(const struct picture *picture, int i)
{
    const struct item *item = &picture->item[i], *above = &picture->item[item->above];
    const struct hoop_topo_link *link = slowest_link(picture->topo, item->node, above->node);
    const double from = x_of(above->depth) + BOX_WIDTH, to = x_of(item->depth), middle = from + 10;
    const double y = item->y + BOX_HEIGHT / 2.0, y_above = above->y + BOX_HEIGHT / 2.0;

    fprintf(picture->out, "<path d=\"M%.0f %.1f H%.0f V%.1f H%.0f\" class=\"edge\"/>\n", from, y_above, middle, y, to);
    if (link == NULL)
        return;
    if (link->gigabytes_per_second.source != HOOP_TOPO_UNKNOWN)
        fprintf(picture->out, "<text x=\"%.0f\" y=\"%.1f\" class=\"speed\">%.3g GB/s%s</text>\n", to - 4, y - 4,
                link->gigabytes_per_second.value, link->current ? " now" : "");
    else
        fprintf(picture->out, "<text x=\"%.0f\" y=\"%.1f\" class=\"speed\">speed ?</text>\n", to - 4, y - 4);
}

static void draw_box(const struct picture *picture, int i)
{
    const struct hoop_topo_node *node = node_of(picture, i);
    const double x = x_of(picture->item[i].depth), y = picture->item[i].y;
    char line[128] = "";

    describe(picture, picture->item[i].node, line, sizeof line);
    fprintf(picture->out, "<rect x=\"%.0f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"5\" fill=\"%s\"/>\n", x, y,
            BOX_WIDTH, BOX_HEIGHT, colour_of(node));
    fprintf(picture->out, "<text x=\"%.0f\" y=\"%.1f\" class=\"name\">%s</text>", x + 8, y + 14, title_of(node));
    if (node->kind == HOOP_TOPO_NIC && node->port_speed.source != HOOP_TOPO_UNKNOWN)
        fprintf(picture->out, "<text x=\"%.0f\" y=\"%.1f\" class=\"speed\">port %.3g GB/s</text>", x + BOX_WIDTH - 8,
                y + 14, node->port_speed.value);
    fprintf(picture->out, "<text x=\"%.0f\" y=\"%.1f\" class=\"more\">", x + 8, y + 28);
    put_text(picture->out, line);
    fputs("</text>\n", picture->out);
}

/* ---- the fabric ---- */

static bool has_fabric(const struct hoop_topo *topo)
{
    const struct hoop_topo_link *link;

    for (int i = 0; (link = hoop_topo_link(topo, i)) != NULL; i++)
        if (link->kind == HOOP_TOPO_LINK_NVLINK || link->kind == HOOP_TOPO_LINK_XGMI)
            return true;
    return false;
}

static void draw_cell(const struct picture *picture, int a, int b, double x, double y)
{
    struct hoop_topo_fact count = {0};
    const bool joined = a != b && hoop_topo_fabric(picture->topo, a, b, &count, NULL);

    fprintf(picture->out, "<rect x=\"%.0f\" y=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"%s\"/>", x, y, CELL - 2,
            CELL - 2,
            a == b             ? "#dddddd"
            : !joined          ? "#f7f7f7"
            : count.value >= 4 ? "#8fcf92"
            : count.value >= 2 ? "#b7dfb8"
                               : "#d8efd9");
    if (joined)
        fprintf(picture->out, "<text x=\"%.0f\" y=\"%.1f\" class=\"cell\">%.0f%s</text>", x + CELL / 2.0 - 1, y + 19,
                count.value, count.source == HOOP_TOPO_UNKNOWN ? "?" : "");
    fputc('\n', picture->out);
}

static bool is_gpu(const struct picture *picture, int i)
{
    return hoop_topo_node(picture->topo, i)->kind == HOOP_TOPO_GPU && is_shown(picture->shown, i);
}

/* Rows and columns are the GPUs, numbered; a cell has the number of links side by side. */
static void draw_grid(const struct picture *picture, double x)
{
    const struct hoop_topo *topo = picture->topo;
    int row = 0, column;

    fprintf(picture->out, "<text x=\"%.0f\" y=\"%d\" class=\"name\">links between GPUs, side by side</text>\n", x,
            HEAD - 4);
    for (int a = 0; hoop_topo_node(topo, a) != NULL; a++) {
        if (!is_gpu(picture, a))
            continue;
        const double y = HEAD + CELL * (row + 1.0);
        fprintf(picture->out, "<text x=\"%.0f\" y=\"%.1f\" class=\"more\">GPU%d</text>\n", x, y + 19,
                hoop_topo_node(topo, a)->number);
        column = 0;
        for (int b = 0; hoop_topo_node(topo, b) != NULL; b++) {
            if (!is_gpu(picture, b))
                continue;
            if (row == 0)
                fprintf(picture->out, "<text x=\"%.0f\" y=\"%d\" class=\"cell\">%d</text>\n",
                        x + 48 + CELL * (column + 0.5), HEAD + 22, hoop_topo_node(topo, b)->number);
            draw_cell(picture, a, b, x + 48 + CELL * column, y);
            column++;
        }
        row++;
    }
}

static int count_gpus(const struct picture *picture)
{
    int count = 0;

    for (int i = 0; hoop_topo_node(picture->topo, i) != NULL; i++)
        count += is_gpu(picture, i);
    return count;
}

static void draw(const struct picture *picture)
{
    const int gpus = count_gpus(picture);
    const bool fabric = gpus > 1 && has_fabric(picture->topo);
    const double right = x_of(picture->depth) + BOX_WIDTH + MARGIN;
    const int beside = !fabric ? 0 : 60 + CELL * gpus > LEAST_GRID ? 60 + CELL * gpus : LEAST_GRID;
    const int width = (int)right + beside;
    const int rows = HEAD + STEP_Y * picture->rows, grid = fabric ? HEAD + CELL * (gpus + 1) : 0;

    fprintf(picture->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"DejaVu Sans, Arial, "
            "sans-serif\">\n"
            "<style>.name{font-size:12px;font-weight:bold}.more{font-size:10.5px;fill:#444}.speed{font-size:10.5px;"
            "fill:#444;text-anchor:end}"
            ".cell{font-size:11px;text-anchor:middle}.edge{fill:none;stroke:#888}rect{stroke:#999;stroke-width:0.6}</"
            "style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\" stroke=\"none\"/>\n<text x=\"%d\" y=\"24\" "
            "class=\"name\">",
            width, (rows > grid ? rows : grid) + MARGIN, MARGIN);
    put_text(picture->out, hoop_topo_origin(picture->topo));
    fputs("</text>\n", picture->out);
    for (int i = 1; i < picture->items; i++)
        draw_edge(picture, i);
    for (int i = 0; i < picture->items; i++)
        draw_box(picture, i);
    if (fabric)
        draw_grid(picture, right);
    fputs("</svg>\n", picture->out);
}

void show_svg(const struct hoop_topo *topo, const bool *shown, FILE *out)
{
    struct picture picture = {.topo = topo, .shown = shown, .out = out};
    int nodes = 0;

    while (hoop_topo_node(topo, nodes) != NULL)
        nodes++;
    picture.item = calloc((size_t)nodes, sizeof *picture.item);
    if (picture.item == NULL)
        return;
    lay_out(&picture, 0, -1, 0);
    draw(&picture);
    free(picture.item);
}
