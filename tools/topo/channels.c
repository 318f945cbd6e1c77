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
static int nic_for(const struct hoop_topo *topo, int gpu, const int *taken)
{
    const struct hoop_topo_node *nic;
    enum hoop_topo_nccl best_path = HOOP_TOPO_NCCL_CLASSES;
    int best = -1;

    for (int i = 0; i < MOST_NODES && (nic = hoop_topo_node(topo, i)) != NULL; i++) {
        if (nic->kind != HOOP_TOPO_NIC || !nic->rdma || nic->virtual_function)
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
static void tell_nics(const struct hoop_topo *topo, FILE *out)
{
    const struct hoop_topo_node *gpu;
    int taken[MOST_NODES] = {0};
    const char *head = "\nTo other hosts:\n";

    for (int i = 0; (gpu = hoop_topo_node(topo, i)) != NULL; i++) {
        const int nic = gpu->kind == HOOP_TOPO_GPU ? nic_for(topo, i, taken) : -1;

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

bool show_channels(const struct hoop_topo *topo, FILE *out, enum hoop_topo_shape shape)
{
    struct hoop_topo_channels found;

    if (hoop_topo_search(topo, shape, &found) != HOOP_OK) {
        fprintf(stderr, "hoop-topo: %s\n", hoop_last_error(NULL));
        return false;
    }
    const double all = found.channels * found.gigabytes_per_second;
    fprintf(
        out,
        "%d %s%s of %.4g GB/s: %.4g GB/s together, %.0f %% of the %.4g GB/s that the narrowest cut lets through; one "
        "alone: %.4g GB/s\n",
        found.channels, shapes[shape], found.channels == 1 ? "" : "s", found.gigabytes_per_second, all,
        all / found.bound * 100, found.bound, found.single);
    tell_hop(out, &found);
    if (found.assumed)
        fputs("speeds that nobody told are assumed: they are marked below\n", out);
    fputc('\n', out);
    for (int i = 0; i < found.channels; i++) {
        fprintf(out, "%2d:", i);
        for (int j = 0; j < found.devices; j++)
            fprintf(out, " %s", hoop_topo_node(topo, found.channel[i].node[j])->label);
        fprintf(out, "  worst hop %s, limited by %s\n", hoop_topo_hop_name(found.channel[i].worst),
                found.channel[i].limit);
    }
    tell_nics(topo, out);
    return true;
}

bool show_channel_table(const struct hoop_topo *topo, FILE *out)
{
    fputs("shape\tGPUs\tchannels\tGB/s each\tGB/s\tbound\tratio\tone alone\tworst hop\tassumed\n", out);
    for (int shape = 0; shape < HOOP_TOPO_SHAPES; shape++) {
        struct hoop_topo_channels found;

        if (hoop_topo_search(topo, (enum hoop_topo_shape)shape, &found) != HOOP_OK) {
            fprintf(stderr, "hoop-topo: %s\n", hoop_last_error(NULL));
            return false;
        }
        const double all = found.channels * found.gigabytes_per_second;
        fprintf(out, "%s\t%d\t%d\t%.4g\t%.4g\t%.4g\t%.2f\t%.4g\t%s\t%s\n", shapes[shape], found.devices, found.channels,
                found.gigabytes_per_second, all, found.bound, all / found.bound, found.single,
                hoop_topo_hop_name(found.worst), found.assumed ? "yes" : "no");
    }
    return true;
}
