// SPDX-License-Identifier: BSD-3-Clause
/* What stands in the way of communication on this machine: limits of the process, what the kernel forbids, PCI links that run below what
 * they can, traffic that is sent a longer way than needed, and what a virtual machine hides. Every finding has its cause and its cure.
 *
 * "wrong" costs speed or makes something fail; "note" may, or says what cannot be seen from here. Of a recorded machine only the topology
 * can be looked at. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "show.h"

enum level { FINE, NOTE, WRONG };

struct doctor {
    const struct hoop_topo *topo;
    const bool *asked; /* by node: what -i asks for, and the bridges above; NULL: all */
    FILE *out;
    int wrong, notes;
};

static void tell(struct doctor *doctor, enum level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void tell(struct doctor *doctor, enum level level, const char *format, ...)
{
    static const char *const names[] = {"ok   ", "note ", "wrong"};
    va_list values;

    doctor->wrong += level == WRONG;
    doctor->notes += level == NOTE;
    fprintf(doctor->out, "%s  ", names[level]);
    va_start(values, format);
    vfprintf(doctor->out, format, values);
    va_end(values);
    fputc('\n', doctor->out);
}

static int count_kind(const struct hoop_topo *topo, enum hoop_topo_kind kind, bool rdma)
{
    const struct hoop_topo_node *node;
    int count = 0;

    for (int i = 0; (node = hoop_topo_node(topo, i)) != NULL; i++)
        count += node->kind == kind && (!rdma || node->rdma);
    return count;
}

/* ---- this process, this system ---- */

static void check_memlock(struct doctor *doctor)
{
    struct rlimit limit;
    const bool pins =
        count_kind(doctor->topo, HOOP_TOPO_GPU, false) + count_kind(doctor->topo, HOOP_TOPO_NIC, true) > 0;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY)
        tell(doctor, FINE, "locked memory is not limited");
    else
        tell(doctor, pins ? WRONG : NOTE,
             "locked memory is limited to %llu KiB: RDMA and pinned buffers of GPUs need more. Set \"* - memlock "
             "unlimited\" in "
             "/etc/security/limits.conf, LimitMEMLOCK=infinity for services, --ulimit memlock=-1 for containers",
             (unsigned long long)limit.rlim_cur / 1024);
}

static void check_files(struct doctor *doctor)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur >= 1024)
        tell(doctor, FINE, "%llu open files are allowed", (unsigned long long)limit.rlim_cur);
    else
        tell(doctor, WRONG,
             "only %llu open files are allowed: every peer on another host takes some. Raise it with ulimit -n 4096",
             (unsigned long long)limit.rlim_cur);
}

static void check_memfd(struct doctor *doctor)
{
    const int file = memfd_create("hoop-topo", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (file < 0)
        tell(doctor, WRONG,
             "memfd_create: %s: ranks of this host cannot share memory. A sandbox (seccomp) forbids it: allow the call "
             "there",
             strerror(errno));
    else
        tell(doctor, FINE, "shared memory without names (memfd) works; the size of /dev/shm does not matter");
    if (file >= 0)
        close(file);
}

/* A number in a small file; `otherwise` if there is none. */
static long number_in(const char *path, long otherwise)
{
    char text[32] = "", *end;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);

    if (file >= 0)
        close(file);
    const long value = strtol(text, &end, 10);
    return got <= 0 || end == text ? otherwise : value;
}

static void check_yama(struct doctor *doctor)
{
    const long scope = number_in("/proc/sys/kernel/yama/ptrace_scope", 0);

    if (scope <= 0)
        tell(doctor, FINE, "processes of one user may read each other's memory (process_vm_readv)");
    else
        tell(doctor, NOTE,
             "yama (ptrace_scope %ld) keeps processes from reading each other's memory: large messages in ordinary "
             "memory take one copy "
             "more. sysctl kernel.yama.ptrace_scope=0, or allocate with hoop_mem_alloc",
             scope);
}

static void check_cpus(struct doctor *doctor)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int mine = hoop_topo_cpus(doctor->topo);

    if (mine < online)
        tell(doctor, NOTE,
             "this process may use %d of %ld CPUs (cgroup, taskset or the scheduler's share): more ranks than that "
             "take turns, and "
             "devices near the others have no CPU of their own",
             mine, online);
    else
        tell(doctor, FINE, "all %ld CPUs may be used", online);
}

static bool is_virtual(void)
{
    char text[4096] = "";
    const int file = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);

    if (file >= 0)
        close(file);
    return got > 0 && strstr(text, " hypervisor") != NULL;
}

/* ---- the topology ---- */

static bool has_bridge_above(const struct hoop_topo *topo, int node)
{
    for (int at = hoop_topo_node(topo, node)->parent; at >= 0; at = hoop_topo_node(topo, at)->parent)
        if (hoop_topo_node(topo, at)->kind == HOOP_TOPO_PCI_BRIDGE)
            return true;
    return false;
}

static void check_hidden(struct doctor *doctor, bool live)
{
    const struct hoop_topo_node *node;
    int flat = 0, devices = 0;

    for (int i = 0; (node = hoop_topo_node(doctor->topo, i)) != NULL; i++)
        if (is_shown(doctor->asked, i) &&
            (node->kind == HOOP_TOPO_GPU || (node->kind == HOOP_TOPO_NIC && node->rdma))) {
            devices++;
            flat += !has_bridge_above(doctor->topo, i);
        }
    if (live && is_virtual())
        tell(doctor, NOTE,
             "this is a virtual machine: it shows the PCI tree, NUMA nodes and link speeds that the hypervisor chose "
             "to show, so classes "
             "and the NIC near a GPU may be wrong. A topology file of the provider (often in /var/run/nvidia-topologyd "
             "or NCCL_TOPO_FILE) "
             "says more: hoop-topo --input FILE");
    if (devices > 1 && flat == devices)
        tell(doctor, NOTE,
             "no GPU or RDMA interface has a PCI bridge above it: the PCI tree is hidden, or every device hangs on a "
             "root port of its own "
             "bus; nothing can be said of switches");
    if (devices == 0 && doctor->asked == NULL)
        tell(doctor, NOTE, "no GPU and no RDMA interface can be seen: there is none, or the container was given none");
}

static void check_links(struct doctor *doctor)
{
    const struct hoop_topo_link *link;

    for (int i = 0; (link = hoop_topo_link(doctor->topo, i)) != NULL; i++) {
        const char *name = hoop_topo_node(doctor->topo, link->b)->label;

        if (link->kind != HOOP_TOPO_LINK_PCI || link->width.source == HOOP_TOPO_UNKNOWN ||
            !is_shown(doctor->asked, link->b))
            continue;
        if (link->device_width.value > link->width.value ||
            link->device_gigatransfers.value > link->gigatransfers.value)
            tell(doctor, NOTE,
                 "%s could use %.0f lanes of %.3g GT/s, the port above it %.0f of %.3g: another slot, or the BIOS's "
                 "setting of that one",
                 name, link->device_width.value, link->device_gigatransfers.value, link->width.value,
                 link->gigatransfers.value);
        if (link->now_width.source != HOOP_TOPO_UNKNOWN && link->now_width.value < link->width.value)
            tell(doctor, WRONG,
                 "%s runs on %.0f of %.0f lanes: reseat the card, look at riser and cable, then at the port's errors",
                 name, link->now_width.value, link->width.value);
        if (link->now_gigatransfers.source != HOOP_TOPO_UNKNOWN &&
            link->now_gigatransfers.value < link->gigatransfers.value)
            tell(doctor, NOTE, "%s runs at %.3g of %.3g GT/s now: power saving, unless it stays so under load", name,
                 link->now_gigatransfers.value, link->gigatransfers.value);
    }
}

static double speed_up(const struct hoop_topo *topo, int node)
{
    const struct hoop_topo_link *link = hoop_topo_link(topo, hoop_topo_node(topo, node)->uplink);

    return link == NULL ? 0 : link->gigabytes_per_second.value;
}

/* A bridge that claims to be slower than half of what hangs below it. */
static void check_bridges(struct doctor *doctor)
{
    const struct hoop_topo *topo = doctor->topo;
    const struct hoop_topo_node *bridge, *child;

    for (int i = 0; (bridge = hoop_topo_node(topo, i)) != NULL; i++) {
        const double mine = bridge->kind == HOOP_TOPO_PCI_BRIDGE && is_shown(doctor->asked, i) ? speed_up(topo, i) : 0;
        double most = 0;

        for (int j = 0; mine > 0 && (child = hoop_topo_node(topo, j)) != NULL; j++)
            if (child->parent == i && speed_up(topo, j) > most)
                most = speed_up(topo, j);
        if (most > 2 * mine)
            tell(doctor, NOTE,
                 "%s (%04x:%02x:%02x.%x) claims a link of %.3g GB/s above links of %.3g: virtual bridges and such that "
                 "sleep do. If it is "
                 "true, all below share it",
                 bridge->label, bridge->bus.domain, bridge->bus.bus, bridge->bus.device, bridge->bus.function, mine,
                 most);
    }
}

/* The port on the way from a node up to the common bridge that sends traffic between devices to the CPUs; -1: none, -2: not told. */
static int redirecting_port(const struct hoop_topo *topo, int node, int other)
{
    int found = -1;

    for (int at = hoop_topo_node(topo, node)->parent; at >= 0; at = hoop_topo_node(topo, at)->parent) {
        const struct hoop_topo_node *bridge = hoop_topo_node(topo, at);
        bool common = false;

        for (int up = other; up >= 0; up = hoop_topo_node(topo, up)->parent)
            common |= up == at;
        if (common || bridge->kind != HOOP_TOPO_PCI_BRIDGE)
            return found;
        if (bridge->acs_redirect.source == HOOP_TOPO_UNKNOWN)
            found = -2;
        else if (bridge->acs_redirect.value > 0)
            return at;
    }
    return found;
}

static bool moves_data(const struct hoop_topo_node *node)
{
    return node->kind == HOOP_TOPO_GPU || (node->kind == HOOP_TOPO_NIC && node->rdma && !node->virtual_function);
}

static void check_acs(struct doctor *doctor, bool live)
{
    const struct hoop_topo *topo = doctor->topo;
    const struct hoop_topo_node *a, *b;
    int unknown = 0, near = 0;

    for (int i = 0; (a = hoop_topo_node(topo, i)) != NULL; i++)
        for (int j = 0; a->kind == HOOP_TOPO_GPU && (b = hoop_topo_node(topo, j)) != NULL; j++) {
            const enum hoop_topo_class path = hoop_topo_path_class(topo, i, j);

            if (i == j || !moves_data(b) || !is_shown(doctor->asked, i) || !is_shown(doctor->asked, j) ||
                (b->kind == HOOP_TOPO_GPU && j < i) || path > HOOP_TOPO_PXB)
                continue;
            const int up = redirecting_port(topo, i, j), down = redirecting_port(topo, j, i),
                      port = up >= 0 ? up : down;
            near++;
            unknown += port < 0 && (up == -2 || down == -2);
            if (port >= 0)
                tell(doctor, WRONG,
                     "%s and %s share a PCI switch, but ACS at port %s (%04x:%02x:%02x.%x) sends what they exchange up "
                     "to the CPUs: slow, on "
                     "some machines wrong data. Turn ACS off in the BIOS, or boot with pci=disable_acs_redir=... for "
                     "that port",
                     a->label, b->label, hoop_topo_node(topo, port)->label, hoop_topo_node(topo, port)->bus.domain,
                     hoop_topo_node(topo, port)->bus.bus, hoop_topo_node(topo, port)->bus.device,
                     hoop_topo_node(topo, port)->bus.function);
        }
    if (unknown > 0)
        tell(doctor, NOTE, "whether ACS sends traffic of %d near pairs of devices up to the CPUs is not told%s",
             unknown, live ? ": run as root to see it" : "");
    else if (near > 0)
        tell(doctor, FINE, "%d near pairs of devices, looked at for ACS", near);
}

static void check_iommu(struct doctor *doctor)
{
    const struct hoop_topo_node *node;

    for (int i = 0; (node = hoop_topo_node(doctor->topo, i)) != NULL; i++)
        if (node->kind == HOOP_TOPO_GPU && is_shown(doctor->asked, i) &&
            node->iommu_group.source != HOOP_TOPO_UNKNOWN) {
            tell(doctor, NOTE,
                 "an IOMMU is on (%s is in group %.0f): transfers between devices are slower or fail where it "
                 "translates. Boot with iommu=pt, "
                 "or turn it off unless devices are passed on to virtual machines",
                 node->label, node->iommu_group.value);
            return;
        }
}

/* RDMA interfaces that are no farther than some PCI switches. */
static void check_nics(struct doctor *doctor)
{
    const struct hoop_topo *topo = doctor->topo;
    const struct hoop_topo_node *gpu, *nic;

    if (count_kind(topo, HOOP_TOPO_NIC, true) == 0)
        return;
    for (int i = 0; (gpu = hoop_topo_node(topo, i)) != NULL; i++) {
        enum hoop_topo_class nearest = HOOP_TOPO_CLASS_UNKNOWN;

        for (int j = 0; gpu->kind == HOOP_TOPO_GPU && (nic = hoop_topo_node(topo, j)) != NULL; j++)
            if (nic->kind == HOOP_TOPO_NIC && nic->rdma && hoop_topo_path_class(topo, i, j) < nearest)
                nearest = hoop_topo_path_class(topo, i, j);
        if (gpu->kind == HOOP_TOPO_GPU && is_shown(doctor->asked, i) && nearest > HOOP_TOPO_PXB)
            tell(doctor, NOTE,
                 "%s has no RDMA interface on its own PCI switches; the nearest is %s: its data to other hosts go "
                 "through a CPU",
                 gpu->label,
                 nearest == HOOP_TOPO_CLASS_UNKNOWN ? "at an unknown distance" : hoop_topo_class_name(nearest));
    }
}

/* Is a GID one that only its own network segment reaches? */
static bool is_link_local(const struct hoop_topo_gid *gid)
{
    return gid->gid[0] == 0xfe && (gid->gid[1] & 0xc0) == 0x80;
}

/* Verbs ports that carry nothing, or, on Ethernet, have no address that RoCE can route. */
static void check_ports(struct doctor *doctor)
{
    const struct hoop_topo_node *node;
    const struct hoop_topo_gid *gid;

    for (int i = 0; (node = hoop_topo_node(doctor->topo, i)) != NULL; i++) {
        bool any = false, good = false;

        if (node->kind != HOOP_TOPO_NIC || node->port_state.source == HOOP_TOPO_UNKNOWN || !is_shown(doctor->asked, i))
            continue;
        if (node->port_state.value < 4) {
            tell(doctor, NOTE,
                 "%s (%s): its port is not active: nothing goes through it. If it is meant to be used: look at the "
                 "cable "
                 "and the switch%s",
                 node->label, node->name,
                 node->port_layer.value == 2 ? ", and set its interface up (ip link set dev IFACE up)"
                                             : ", and whether a subnet manager runs (ibstat)");
            continue;
        }
        for (int k = 0; (gid = hoop_topo_gid(doctor->topo, k)) != NULL; k++) {
            any |= gid->node == i;
            good |= gid->node == i && gid->type == HOOP_TOPO_GID_ROCE_2 && !is_link_local(gid);
        }
        if (node->port_layer.value == 2 && any && !good)
            tell(doctor, NOTE,
                 "%s (%s): no GID of type RoCE v2 with an address of more than its own segment: hosts behind a router "
                 "cannot be reached. Give its interface an IP address",
                 node->label, node->name);
    }
}

static void check_fabric(struct doctor *doctor)
{
    const struct hoop_topo *topo = doctor->topo;
    const struct hoop_topo_link *link;
    int told = 0, peers = 0;

    for (int i = 0; hoop_topo_node(topo, i) != NULL; i++)
        told += is_shown(doctor->asked, i) && hoop_topo_node(topo, i)->kind == HOOP_TOPO_GPU &&
                hoop_topo_node(topo, i)->ordinal.source == HOOP_TOPO_CUDA;
    for (int i = 0; (link = hoop_topo_link(topo, i)) != NULL; i++)
        peers +=
            link->kind == HOOP_TOPO_LINK_PEER && is_shown(doctor->asked, link->a) && is_shown(doctor->asked, link->b);
    if (told < 2)
        return;
    if (count_kind(topo, HOOP_TOPO_SWITCH, false) > 0 && peers == 0)
        tell(doctor, WRONG,
             "there are NVSwitches, but no GPU reaches another's memory: the fabric manager is not running or its "
             "version is not the "
             "driver's. systemctl status nvidia-fabricmanager");
    else if (peers == 0)
        tell(doctor, NOTE,
             "no GPU reaches another's memory: the driver does not allow it for this model, or the IOMMU or a "
             "container stands in the way; "
             "data go through the host");
    else
        tell(doctor, FINE, "%d pairs of GPUs reach each other's memory", peers);
}

static void check_places(struct doctor *doctor)
{
    const struct hoop_topo_node *node;

    for (int i = 0; (node = hoop_topo_node(doctor->topo, i)) != NULL; i++) {
        char list[LIST_TEXT] = "";

        if (moves_data(node) && is_shown(doctor->asked, i) &&
            hoop_topo_numa_list(doctor->topo, i, list, sizeof list) == HOOP_OK && list[0] == '\0')
            tell(doctor, NOTE,
                 "nobody tells near which NUMA node %s is: the firmware leaves it out; ranks cannot be placed near it",
                 node->label);
    }
    for (int i = 0; hoop_topo_note(doctor->topo, i) != NULL; i++)
        tell(doctor, NOTE, "%s", hoop_topo_note(doctor->topo, i));
}

/* Pairs of GPUs of which the driver says that they do not reach each other's memory, by its reason. */
static void check_peers(struct doctor *doctor)
{
    static const struct {
        enum hoop_topo_peer peer;
        enum level level;
        const char *why;
    } reasons[] = {
        {HOOP_TOPO_PEER_CHIPSET, NOTE, "the chipset does not carry it (CNS). Data go through memory of the host"},
        {HOOP_TOPO_PEER_GPU, NOTE, "GPUs of this kind do not do it (GNS). Data go through memory of the host"},
        {HOOP_TOPO_PEER_TOPOLOGY, NOTE,
         "the way between them does not carry it (TNS): such pairs need one PCIe root or switch. Data go through "
         "memory "
         "of the host"},
        {HOOP_TOPO_PEER_REGISTRY, WRONG,
         "a registry key of the driver forbids it (DR). Look for NVreg_RegistryDwords in /etc/modprobe.d and remove "
         "it"},
        {HOOP_TOPO_PEER_UNSUPPORTED, NOTE, "the driver does not say why (NS). Data go through memory of the host"},
    };
    const struct hoop_topo *topo = doctor->topo;

    for (size_t k = 0; k < sizeof reasons / sizeof reasons[0]; k++) {
        int pairs = 0, first[2] = {0, 0};

        for (int i = 0; hoop_topo_node(topo, i) != NULL; i++)
            for (int j = 0; j < i; j++)
                if (is_shown(doctor->asked, i) && is_shown(doctor->asked, j) &&
                    hoop_topo_peer_access(topo, j, i, HOOP_TOPO_PEER_READ) == reasons[k].peer && pairs++ == 0) {
                    first[0] = j;
                    first[1] = i;
                }
        if (pairs > 0)
            tell(doctor, reasons[k].level, "%s and %s%s do not reach each other's memory: %s",
                 hoop_topo_node(topo, first[0])->label, hoop_topo_node(topo, first[1])->label,
                 pairs > 1 ? ", and further pairs," : "", reasons[k].why);
    }
}

/* Everything above the devices that -i asks for, and these. NULL: no memory. */
static bool *find_asked(const struct hoop_topo *topo, const bool *shown)
{
    int nodes = 0;

    while (hoop_topo_node(topo, nodes) != NULL)
        nodes++;
    bool *asked = calloc((size_t)nodes, sizeof *asked);
    for (int i = 0; i < nodes && asked != NULL; i++)
        for (int at = shown[i] ? i : -1; at >= 0; at = hoop_topo_node(topo, at)->parent)
            asked[at] = true;
    return asked;
}

static void check_topology(struct doctor *doctor, bool live)
{
    check_hidden(doctor, live);
    check_places(doctor);
    check_links(doctor);
    check_bridges(doctor);
    check_acs(doctor, live);
    check_iommu(doctor);
    check_nics(doctor);
    check_ports(doctor);
    check_fabric(doctor);
    check_peers(doctor);
}

bool show_doctor(const struct hoop_topo *topo, const bool *shown, FILE *out, bool live)
{
    bool *asked = shown == NULL ? NULL : find_asked(topo, shown);
    struct doctor doctor = {.topo = topo, .asked = asked, .out = out};

    if (shown != NULL && asked == NULL) {
        fprintf(stderr, "hoop-topo: no memory\n");
        return false;
    }
    fprintf(out, "%s\n\n", hoop_topo_origin(topo));
    if (live) {
        check_memlock(&doctor);
        check_files(&doctor);
        check_memfd(&doctor);
        check_yama(&doctor);
        check_cpus(&doctor);
    }
    check_topology(&doctor, live);
    fprintf(out, "\n%d wrong, %d to note%s\n", doctor.wrong, doctor.notes,
            live ? "" : "; limits and rights of the machine itself were not looked at");
    free(asked);
    return doctor.wrong == 0;
}
