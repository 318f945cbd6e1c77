// SPDX-License-Identifier: BSD-3-Clause
/* The readers of NCCL's topology files and of the texts in /sys: any text is read or refused, and what is read is a tree in which every pair of nodes has the
 * same class in both directions. (What hwloc makes of its own files is its affair.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/sysfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void walk(const struct hoop_topo *topo)
{
    const struct hoop_topo_node *node;

    for (int i = 0; (node = hoop_topo_node(topo, i)) != NULL; i++) {
        check(node->parent < i || hoop_topo_node(topo, node->parent)->kind == node->kind);
        for (int j = 0; j < i; j++) {
            check(hoop_topo_nccl_class(topo, i, j) == hoop_topo_nccl_class(topo, j, i));
            check(hoop_topo_path_class(topo, i, j) == hoop_topo_path_class(topo, j, i));
            check(hoop_topo_fabric(topo, i, j, NULL, NULL) == hoop_topo_fabric(topo, j, i, NULL, NULL));
        }
    }
    for (int i = 0; hoop_topo_link(topo, i) != NULL; i++)
        check(hoop_topo_link(topo, i)->a < hoop_topo_link(topo, i)->b);
}

/* The network must not overflow, whatever the figures are. */
static void search(const struct hoop_topo *topo)
{
    static struct hoop_topo_channels found;

    if (hoop_topo_count(topo, HOOP_TOPO_GPU) > 4) /* time */
        return;
    for (int hosts = 1; hosts < 3; hosts++)
        if (hoop_topo_search(topo, &(struct hoop_topo_wanted){.hosts = hosts}, &found) == HOOP_OK)
            check(found.channels * found.gigabytes_per_second <= found.bound + 1e-6);
}

/* Written and read again it is the same. */
static void same_again(const struct hoop_topo *topo)
{
    struct hoop_topo *again = NULL;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    check(file != NULL && hoop_topo_write(topo, file) == HOOP_OK && fclose(file) == 0);
    check(hoop_topo_read_own(&again, text, "again") == HOOP_OK);
    check(hoop_topo_digest(again) == hoop_topo_digest(topo));
    hoop_topo_free(again);
    free(text);
}

/* In XML of hwloc it is well-formed, or there is no form for it. (What hwloc makes of it is its affair.) */
static void for_hwloc(const struct hoop_topo *topo)
{
    enum hoop_topo_form form;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    check(file != NULL);
    const enum hoop_status status = hoop_topo_write_hwloc(topo, file);
    check(fclose(file) == 0 && (status == HOOP_OK || (status == HOOP_ERR_UNSUPPORTED && size == 0)));
    if (status == HOOP_OK)
        check(hoop_topo_recognize(text, "hwloc", &form) == HOOP_OK && form == HOOP_TOPO_FORM_HWLOC);
    free(text);
}

static void texts(const char *text, const uint8_t *data, size_t bytes)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    struct hoop_topo_bus bus;
    double transfers;

    check(set != NULL);
    check(!hoop_topo_parse_bus(text, &bus) || (bus.known && bus.device < 32 && bus.function < 8));
    check(!hoop_topo_parse_transfers(text, &transfers) || (transfers > 0 && transfers < 1e6));
    check(!hoop_topo_parse_mask(text, set) || hwloc_bitmap_last(set) < 32768);
    check(hoop_sysfs_acs(data, bytes) < 0x80);
    hwloc_bitmap_free(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hoop_topo *topo = NULL;
    char *text = malloc(bytes + 1);
    enum hoop_topo_form form;

    check(text != NULL);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    texts(text, data, bytes);
    hoop_topo_recognize(text, "fuzz", &form);
    if (hoop_topo_read_nccl(&topo, text, "fuzz") == HOOP_OK)
        walk(topo);
    hoop_topo_free(topo);
    topo = NULL;
    if (hoop_topo_read_own(&topo, text, "fuzz") == HOOP_OK) {
        walk(topo);
        search(topo);
        same_again(topo);
        for_hwloc(topo);
    }
    hoop_topo_free(topo);
    free(text);
    return 0;
}
