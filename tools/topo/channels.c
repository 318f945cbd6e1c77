// SPDX-License-Identifier: BSD-3-Clause
/* What the search for rings and chains finds, for people. */
#include "show.h"

static const char *const shapes[HOOP_TOPO_SHAPES] = {"ring", "chain"};

static void tell_hop(FILE *out, const struct hoop_topo_channels *found)
{
    static const char *const ways[HOOP_TOPO_HOPS] = {
        "all hops go over the GPU fabric", "hops over PCIe, one switch at most",
        "hops over PCIe, several switches at most", "hops through a CPU, since nothing nearer joins all GPUs",
        "hops between CPUs, since nothing nearer joins all GPUs"};

    fprintf(out, "%s (%s)\n", ways[found->worst], hoop_topo_hop_name(found->worst));
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
