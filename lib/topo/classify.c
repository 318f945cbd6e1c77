// SPDX-License-Identifier: BSD-3-Clause
/* What a PCI function is, by class and vendor.
 *
 * Names of device drivers would be surer, but a recorded machine rarely has them. Display controllers are a trap: most
 * servers have one that only paints the console, so a GPU needs a maker of compute GPUs as well, and the known
 * console chips of those makers are left out. */
#include <stddef.h>
#include <string.h>

#include "topo/model.h"

enum { NVIDIA = 0x10de, AMD = 0x1002, INTEL = 0x8086, CRAY = 0x17db };
enum { CLASS_NETWORK = 0x02, CLASS_DISPLAY = 0x03, CLASS_ACCELERATOR = 0x12 }; /* high byte of the class */
enum { CLASS_INFINIBAND = 0x0207, CLASS_VGA = 0x0300, CLASS_3D = 0x0302, CLASS_OTHER_BRIDGE = 0x0680 };

/* Console chips of AMD's ATI line: Rage XL, Radeon RV100, ES1000. */
static bool console_chip(uint16_t device)
{
    static const uint16_t chips[] = {0x4752, 0x5159, 0x515e, 0x5969};

    for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++)
        if (chips[i] == device)
            return true;
    return false;
}

static bool is_gpu(const struct hoop_topo_identity *identity)
{
    const int base = identity->pci_class >> 8;

    if (base != CLASS_DISPLAY && base != CLASS_ACCELERATOR)
        return false;
    switch (identity->vendor) {
    case 0: /* nobody told the maker, as in NCCL's templates: console chips are VGA controllers, not of these classes */
        return identity->pci_class == CLASS_3D || base == CLASS_ACCELERATOR;
    case NVIDIA:
        return true;
    case AMD:
        return !console_chip(identity->device);
    case INTEL:
        return identity->pci_class != CLASS_VGA; /* VGA: the display part of the CPU */
    default:
        return false;
    }
}

enum hoop_topo_kind hoop_topo_classify(const struct hoop_topo_identity *identity, bool *rdma)
{
    *rdma = false;
    if (identity->fabric_switch || (identity->vendor == NVIDIA && identity->pci_class == CLASS_OTHER_BRIDGE))
        return HOOP_TOPO_SWITCH;
    if (is_gpu(identity))
        return HOOP_TOPO_GPU;
    if (!identity->verbs && identity->pci_class >> 8 != CLASS_NETWORK)
        return HOOP_TOPO_PCI_DEVICE;
    /* Cray's Slingshot calls itself Ethernet and has no verbs device. */
    *rdma = identity->verbs || identity->pci_class == CLASS_INFINIBAND || identity->vendor == CRAY;
    return HOOP_TOPO_NIC;
}

uint16_t hoop_topo_gcn_device(const char *model)
{
    static const struct {
        const char *begins;
        uint16_t device;
    } names[] = {{"gcn 906", 0x66a1}, {"gcn 908", 0x738c}, {"gcn 910", 0x740c}, {"gfx906", 0x66a1},
                 {"gfx908", 0x738c},  {"gfx90a", 0x740c},  {"gfx94", 0x74a1},   {"gfx95", 0x75a0}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(model, names[i].begins, strlen(names[i].begins)) == 0)
            return names[i].device;
    return 0;
}

double hoop_topo_fabric_rate(uint16_t vendor, uint16_t device)
{
    static const struct {
        uint16_t first, last;
        double rate;
    } generations[] = {
        {0x66a0, 0x66af, 46},   /* Vega 20 (MI50, MI60) */
        {0x7388, 0x738f, 46},   /* MI100 */
        {0x7408, 0x740f, 50},   /* MI200 */
        {0x74a0, 0x74bf, 64},   /* MI300 */
        {0x75a0, 0x75bf, 76.8}, /* MI350 */
    };

    if (vendor == NVIDIA)
        return hoop_topo_nvlink_rate(device);
    for (size_t i = 0; vendor == AMD && i < sizeof(generations) / sizeof(generations[0]); i++)
        if (device >= generations[i].first && device <= generations[i].last)
            return generations[i].rate;
    return 0;
}

double hoop_topo_nvlink_rate(uint16_t device)
{
    static const struct {
        uint16_t first, last;
        double rate;
    } generations[] = {
        {0x15f0, 0x15ff, 20}, /* Pascal, NVLink 1 */
        {0x1d80, 0x1fff, 25}, /* Volta, Turing: 2 */
        {0x2080, 0x25ff, 25}, /* Ampere, Hopper: 3 and 4 */
        {0x2900, 0x2aff, 50}, /* Blackwell: 5 */
    };

    for (size_t i = 0; i < sizeof(generations) / sizeof(generations[0]); i++)
        if (device >= generations[i].first && device <= generations[i].last)
            return generations[i].rate;
    return 0;
}
