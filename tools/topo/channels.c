// SPDX-License-Identifier: BSD-3-Clause
/* What the search for rings and chains finds, for people. */
#include "show.h"

enum { MOST_NODES = 4096 };

static const char *const shapes[HOOP_TOPO_SHAPES] = {"ring", "chain"};

static void tell_hop(FILE *out, const struct hoop_topo_channels *found)
{
    static const char *const ways[HOOP_TOPO_HOPS] = {
        "all hops go over the GPU fabric", "hops over PCIe, one switch at most",
        "hops over PCIe, several switches at most", "hops through a CPU, since nothing nearer joins all GPUs",
        "hops between CPUs, since nothing nearer joins all GPUs"};

    fprintf(out, "%s (%s)\n", ways[found->worst], hoop_topo_hop_name(found->worst));
}

/* Of the RDMA interfaces nearest to a GPU the fastest, of those the one that fewest GPUs before it have taken; -1: there is none. */
static int nic_for(const struct hoop_topo *topo, const bool *shown, int gpu, const int *taken)
{
    const struct hoop_topo_node *nic;
    enum hoop_topo_nccl best_path = HOOP_TOPO_NCCL_CLASSES;
    int best = -1;

    for (int i = 0; i < MOST_NODES && (nic = hoop_topo_node(topo, i)) != NULL; i++) {
        if (nic->kind != HOOP_TOPO_NIC || !nic->rdma || nic->virtual_function || !is_shown(shown, i))
            continue;
        const enum hoop_topo_nccl path = hoop_topo_nccl_class(topo, gpu, i);
        const double more = best < 0 ? 0 : nic->port_speed.value - hoop_topo_node(topo, best)->port_speed.value;

        if (best < 0 || path < best_path ||
            (path == best_path && (more > 0 || (more == 0 && taken[i] < taken[best])))) {
            best = i;
            best_path = path;
        }
    }
    return best;
}

/* Which interface each GPU would use for other hosts. */
static void tell_nics(const struct hoop_topo *topo, FILE *out, const bool *shown)
{
    const struct hoop_topo_node *gpu;
    int taken[MOST_NODES] = {0};
    const char *head = "\nTo other hosts:\n";

    for (int i = 0; (gpu = hoop_topo_node(topo, i)) != NULL; i++) {
        const int nic = gpu->kind == HOOP_TOPO_GPU && is_shown(shown, i) ? nic_for(topo, shown, i, taken) : -1;

        if (nic < 0)
            continue;
        const struct hoop_topo_node *found = hoop_topo_node(topo, nic);
        taken[nic]++;
        fprintf(out, "%s  %s: %s %s (%s", head, gpu->label, found->label, found->name,
                hoop_topo_nccl_name(hoop_topo_nccl_class(topo, i, nic)));
        if (found->port_speed.source != HOOP_TOPO_UNKNOWN)
            fprintf(out, ", port %.4g GB/s", found->port_speed.value);
        fputs(")\n", out);
        head = "";
    }
}

static const char *const port_ways[HOOP_TOPO_HOPS] = {"", "one PCIe switch", "several PCIe switches", "a CPU",
                                                      "a link between CPUs"};

/* What joins the hosts, and what was allowed to get there. */
static void tell_hosts(FILE *out, const struct hoop_topo_channels *found, enum hoop_topo_shape shape)
{
    if (found->hosts == 1)
        return;
    fprintf(out, "between GPUs and ports: %s at most (%s)", port_ways[found->worst_port],
            hoop_topo_hop_name(found->worst_port));
    if (found->worst_port > found->nearest_port)
        fprintf(out, "; %s would do for one, farther ports are used since all together carry more",
                hoop_topo_hop_name(found->nearest_port));
    if (shape == HOOP_TOPO_CHAIN)
        fputs("\nthe first GPUs of a channel join the hosts as two binary trees, each for half of its data\n", out);
    else
        fprintf(out,
                "\nfrom host to host on one rail: a ring leaves by its last port, and every second host runs backwards"
                "%s\n",
                found->hosts % 2 == 1 ? "; from the last host to the first it changes its rail, where its ports differ"
                                      : "");
}

static void tell_port(const struct hoop_topo *topo, FILE *out, int port, const char *before, const char *behind)
{
    if (port >= 0)
        fprintf(out, "%s%s%s", before, hoop_topo_node(topo, port)->label, behind);
}

static void tell_channel(const struct hoop_topo *topo, FILE *out, const struct hoop_topo_channels *found, int i)
{
    const struct hoop_topo_channel *channel = &found->channel[i];

    fprintf(out, "%2d:", i);
    tell_port(topo, out, channel->port[0], " ", " >");
    for (int j = 0; j < found->devices; j++)
        fprintf(out, " %s", hoop_topo_node(topo, channel->node[j])->label);
    tell_port(topo, out, channel->port[1], " > ", "");
    fprintf(out, "  worst hop %s, limited by %s\n",
            hoop_topo_hop_name(channel->port[0] >= 0 && channel->worst_port > channel->worst ? channel->worst_port
                                                                                             : channel->worst),
            channel->limit);
}

/* False: there is none, as told on standard error. */
static bool find(const struct hoop_topo *topo, const struct hoop_topo_wanted *wanted, struct hoop_topo_channels *found)
{
    if (hoop_topo_search(topo, wanted, found) == HOOP_OK)
        return true;
    fprintf(stderr, "hoop-topo: %s\n", hoop_last_error(NULL));
    return false;
}

bool show_channels(const struct hoop_topo *topo, FILE *out, const struct hoop_topo_wanted *wanted)
{
    struct hoop_topo_channels found;

    if (!find(topo, wanted, &found))
        return false;
    const double all = found.channels * found.gigabytes_per_second;
    fprintf(out,
            "%d %s%s of %.4g GB/s: %.4g GB/s together, %.0f %% of the %.4g GB/s that %s; one "
            "alone: %.4g GB/s\n",
            found.channels, shapes[wanted->shape], found.channels == 1 ? "" : "s", found.gigabytes_per_second, all,
            all / found.bound * 100, found.bound,
            found.hosts == 1 ? "the links let through at most" : "ports and GPUs let through", found.single);
    tell_hop(out, &found);
    tell_hosts(out, &found, wanted->shape);
    if (found.assumed)
        fputs("speeds that nobody told are assumed: they are marked below\n", out);
    fputc('\n', out);
    for (int i = 0; i < found.channels; i++)
        tell_channel(topo, out, &found, i);
    if (found.hosts == 1)
        tell_nics(topo, out, wanted->shown);
    return true;
}

bool show_channel_table(const struct hoop_topo *topo, FILE *out, const struct hoop_topo_wanted *wanted)
{
    struct hoop_topo_wanted shape = *wanted;

    fputs("shape\tGPUs\tchannels\tGB/s each\tGB/s\tbound\tratio\tone alone\tworst hop\tassumed\n", out);
    for (int i = 0; i < HOOP_TOPO_SHAPES; i++) {
        struct hoop_topo_channels found;

        shape.shape = (enum hoop_topo_shape)i;
        if (!find(topo, &shape, &found))
            return false;
        const double all = found.channels * found.gigabytes_per_second;
        fprintf(out, "%s\t%d\t%d\t%.4g\t%.4g\t%.4g\t%.2f\t%.4g\t%s\t%s\n", shapes[i], found.devices * found.hosts,
                found.channels, found.gigabytes_per_second, all, found.bound, all / found.bound, found.single,
                hoop_topo_hop_name(found.worst), found.assumed ? "yes" : "no");
    }
    return true;
}
