// SPDX-License-Identifier: BSD-3-Clause
/* hoop-topo: what the machine is made of and how far its parts are apart. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manual.h"
#include "show.h"

enum mode {
    MATRIX,
    MATRIX_PCI,
    NCCL,
    TREE,
    JSON,
    PEERS,
    NEAR_CPU,
    NEAR_GPU,
    BETWEEN,
    RINGS,
    TREES,
    CHANNELS,
    SVG,
    DOT,
    NCCL_XML,
    OWN,
    HWLOC,
    MEASURE,
    DOCTOR
};

enum {
    KEY_INPUT = 0x100,
    KEY_PCI,
    KEY_NCCL,
    KEY_TREE,
    KEY_JSON,
    KEY_PEERS,
    KEY_RINGS,
    KEY_TREES,
    KEY_CHANNELS,
    KEY_SVG,
    KEY_DOCTOR,
    KEY_MEASURE,
    KEY_EXPORT,
    KEY_FACTS
};

struct request {
    enum mode mode;
    const char *input;
    const char *facts;
    char devices[1024]; /* of -i, and the arguments of -p; "": all */
    long number;        /* of -c */
    long level;         /* of -n: hosts, or how near; -1: not given */
    char what;          /* of -p2p */
};

static const struct argp_option options[] = {
    {"matrix", 'm', NULL, 0,
     "matrix of the paths between GPUs and RDMA interfaces; without GPU, between NUMA nodes and all "
     "interfaces (the default)",
     0},
    {"matrix_pci", KEY_PCI, NULL, 0, "the same without GPU fabrics, also written -mp", 0},
    {"nccl", KEY_NCCL, NULL, 0, "matrix of the classes that NCCL and RCCL give the paths along PCIe", 0},
    {"p2p", KEY_PEERS, "WHAT", 0,
     "matrix of peer access between GPUs: r (reads), w (writes), n (NVLink), a (atomic operations), p (PCIe); also "
     "written -p2p",
     0},
    {"cpu", 'c', "CPU", 0, "GPUs near a CPU", 0},
    {"nearest_gpus", 'n', "LEVEL|HOSTS", 0,
     "GPUs at a distance: 0 functions of one device, 1 one PCIe switch, 2 several, 3 a host bridge, 4 host bridges of "
     "one NUMA node, 5 "
     "between NUMA nodes; of the GPUs that -i names, or all. With --rings, --trees or --channels: over that many hosts "
     "such as this one, each GPU by the network ports near it",
     0},
    {"gpu_path", 'p', NULL, 0, "what is between two devices, named by -i or as two arguments", 0},
    {"id", 'i', "LIST", 0, "only these devices: GPU0 or 0, NIC0, bus ids or names, parted by commas; in every mode", 0},
    {"rings", KEY_RINGS, NULL, 0, "rings through all GPUs that the links allow side by side, with what limits each", 0},
    {"trees", KEY_TREES, NULL, 0, "the same for trees, which inside a host are chains", 0},
    {"channels", KEY_CHANNELS, NULL, 0, "one line for each shape: channels, bandwidth, upper bound", 0},
    {"doctor", KEY_DOCTOR, NULL, 0,
     "what stands in the way of communication here, with cause and cure: limits, rights, links below what they can, "
     "detours; exit code 1 if something is wrong",
     0},
    {"measure", KEY_MEASURE, NULL, 0,
     "measure this machine: bandwidth and latency of memory from core to core (with many cores from NUMA node to NUMA "
     "node), beside the class of each way",
     0},
    {"svg", KEY_SVG, NULL, 0, "a picture of the machine: sockets, switches, devices, the speed of their links", 0},
    {"export", KEY_EXPORT, "FORM", 0,
     "the machine as json, svg, dot (for Graphviz), nccl (a file for NCCL_TOPO_FILE), hwloc (XML for lstopo and "
     "others) or "
     "hoop (all that is known, for --input)",
     0},
    {"tree", KEY_TREE, NULL, 0, "the machine as a tree: sockets, NUMA nodes, bridges, devices", 0},
    {"json", KEY_JSON, NULL, 0, "all nodes and links with the source of each fact; what is unknown is null", 0},
    {"input", KEY_INPUT, "FILE", 0,
     "show a recorded machine, not this one: what --export hoop wrote, XML of hwloc (lstopo FILE.xml), a topology file "
     "of NCCL or RCCL, a "
     "copy of /sys (a folder, or an archive such as hwloc-gather-topology makes), or "
     "synthetic:DESCRIPTION in hwloc's words. Without it the file that HOOP_TOPO_FILE names, where that is set",
     0},
    {"facts", KEY_FACTS, "FILE", 0,
     "state single facts over what is found: lines such as GPU0 numa 1, mlx5_0 port_speed 25 or GPU0 GPU1 p2p no. "
     "Without "
     "it the file that HOOP_TOPO_FACTS names, where that is set",
     0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t take_number(struct argp_state *state, const char *text, const char *option, long most, long *number)
{
    char *end;

    *number = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || *number < 0 || *number > most)
        argp_error(state, "%s %s: it is a number from 0 to %ld", option, text, most);
    return 0;
}

static error_t take_form(struct argp_state *state, const char *form, struct request *request)
{
    static const struct {
        const char *name;
        enum mode mode;
    } forms[] = {{"json", JSON}, {"svg", SVG}, {"dot", DOT}, {"nccl", NCCL_XML}, {"hoop", OWN}, {"hwloc", HWLOC}};

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strcmp(form, forms[i].name) == 0) {
            request->mode = forms[i].mode;
            return 0;
        }
    argp_error(state, "--export %s: it is one of json, svg, dot, nccl, hwloc, hoop", form);
    return 0;
}

static error_t add_devices(struct argp_state *state, struct request *request, const char *list)
{
    const size_t used = strlen(request->devices);

    if (*list == '\0' || used + strlen(list) + 2 > sizeof request->devices)
        argp_error(state, "the list of devices is empty or too long");
    else
        snprintf(request->devices + used, sizeof request->devices - used, "%s%s", used > 0 ? "," : "", list);
    return 0;
}

/* Options that only choose what is shown. */
static bool take_mode(int key, struct request *request)
{
    static const struct {
        int key;
        enum mode mode;
    } modes[] = {{'m', MATRIX},      {KEY_PCI, MATRIX_PCI}, {KEY_NCCL, NCCL},
                 {KEY_TREE, TREE},   {KEY_JSON, JSON},      {'p', BETWEEN},
                 {KEY_RINGS, RINGS}, {KEY_TREES, TREES},    {KEY_CHANNELS, CHANNELS},
                 {KEY_SVG, SVG},     {KEY_DOCTOR, DOCTOR},  {KEY_MEASURE, MEASURE}};

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (modes[i].key == key) {
            request->mode = modes[i].mode;
            return true;
        }
    return false;
}

static error_t take_peers(struct argp_state *state, const char *what, struct request *request)
{
    request->mode = PEERS;
    request->what = what[0];
    if (strlen(what) != 1 || strchr("rwnap", what[0]) == NULL)
        argp_error(state, "-p2p %s: it is one of r, w, n, a, p", what);
    return 0;
}

/* -n is read: hosts, where channels are shown, else a mode of its own. */
static error_t take_level(struct argp_state *state, struct request *request)
{
    const bool channels = request->mode == RINGS || request->mode == TREES || request->mode == CHANNELS;

    if (request->level < 0)
        return 0;
    if (channels && request->level == 0)
        argp_error(state, "-n 0: there is at least one host");
    if (!channels && request->level > 5)
        argp_error(state, "-n %ld: it is a number from 0 to 5, or with --rings, --trees or --channels of hosts",
                   request->level);
    request->mode = channels ? request->mode : NEAR_GPU;
    return 0;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;

    if (take_mode(key, request))
        return 0;
    switch (key) {
    case KEY_INPUT:
        request->input = argument;
        return 0;
    case KEY_FACTS:
        request->facts = argument;
        return 0;
    case KEY_PEERS:
        return take_peers(state, argument, request);
    case KEY_EXPORT:
        return take_form(state, argument, request);
    case 'c':
        request->mode = NEAR_CPU;
        return take_number(state, argument, "-c", 65535, &request->number);
    case 'n':
        return take_number(state, argument, "-n", HOOP_TOPO_SEARCH_HOSTS, &request->level);
    case ARGP_KEY_END:
        return take_level(state, request);
    case 'i':
        return add_devices(state, request, argument);
    case ARGP_KEY_ARG:
        if (request->mode == BETWEEN)
            return add_devices(state, request, argument);
        argp_error(state, "%s: no arguments are expected; a recorded machine is given by --input", argument);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {
    options,
    parse,
    "[DEVICE DEVICE]",
    "Shows what this machine is made of and how far its parts are apart, in the layout of "
    "`nvidia-smi topo -m`: cells parted by TAB, the CPUs and NUMA nodes near each device, legends.",
    NULL,
    NULL,
    NULL};

static const struct hoop_manual_section sections[] = {
    {"CLASSES", "X\tthe device itself\n"
                "NV#\t# NVLinks side by side join the two, directly or through switches\n"
                "PIX\tone PCIe bridge at most\n"
                "PXB\tseveral PCIe bridges, no host bridge\n"
                "PHB\tone PCIe host bridge\n"
                "NODE\tseveral host bridges of one NUMA node\n"
                "SYS\tbetween NUMA nodes\n"
                "?\tnobody told\n"
                "\n"
                "A class says how the machine is built, not how fast it is. CPU affinity is\n"
                "limited to the CPUs that the process may use. Nothing is guessed: a\n"
                "virtual machine that hides its PCI bridges shows what it shows.\n"
                "\n"
                "The CUDA driver and NVML, where they are, tell the devices' ordinals, NVLinks\n"
                "and peer access: the GPU legend.\n"},
    {"EXAMPLES", " hoop-topo                       the matrix of this machine\n"
                 " hoop-topo --tree                what hangs where\n"
                 " lstopo box.xml                  record a machine with hwloc, and then\n"
                 " hoop-topo --input box.xml -mp   show its matrix, PCIe only\n"
                 " hoop-topo -i 0,NIC1             two devices only\n"
                 " hoop-topo -n 1 -i 0             GPUs on the PCIe switch of the first\n"
                 " hoop-topo -p GPU0 mlx5_0        what is between the two\n"
                 " hoop-topo --svg > box.svg       a picture\n"
                 " hoop-topo --doctor              what to mend on this machine\n"
                 " hoop-topo --measure             how fast memory goes from core to core\n"
                 " hoop-topo --rings               which rings the links allow, and what limits them\n"
                 " hoop-topo --facts my.facts      what a person knows better, say GPU0 numa 1\n"
                 " hoop-topo --rings -n 4          the same over four such hosts\n"},
    {"EXIT CODES", "0\tthe machine was shown\n"
                   "1\tit cannot be read, the output cannot be written, or --doctor found something wrong\n"
                   "2\twrong usage\n"},
    {NULL, NULL},
};

static const struct hoop_manual_words words[] = {{"input", "@file"},
                                                 {"facts", "@file"},
                                                 {"p2p", "r w n a p"},
                                                 {"export", "json svg dot nccl hwloc hoop"},
                                                 {"nearest_gpus", "0 1 2 3 4 5"},
                                                 {NULL, NULL}};

static const struct hoop_manual manual = {.name = "hoop-topo",
                                          .summary = "show the topology of the machine",
                                          .argp = &parser,
                                          .sections = sections,
                                          .words = words};

/* The options -mp and -p2p are older than this program: several letters behind one dash. */
static void translate(int argc, char **argv)
{
    static char matrix[] = "--matrix_pci", peers[] = "--p2p";

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-mp") == 0)
            argv[i] = matrix;
        else if (strcmp(argv[i], "-p2p") == 0)
            argv[i] = peers;
}

/* Both forms that the library writes. */
static bool write_form(const struct hoop_topo *topo, enum mode form)
{
    const struct hoop_topo_node *node;

    if ((form == OWN ? hoop_topo_write : hoop_topo_write_hwloc)(topo, stdout) != HOOP_OK) {
        fprintf(stderr, "hoop-topo: %s\n", hoop_last_error(NULL));
        return false;
    }
    for (int i = 0; form == HWLOC && (node = hoop_topo_node(topo, i)) != NULL; i++)
        if (node->bus.known && node->bus.domain > 0xffff) {
            fprintf(stderr,
                    "hoop-topo: %s is in PCI domain %x: hwloc 2 leaves out devices in domains above ffff, hwloc 3 does "
                    "not\n",
                    node->label, node->bus.domain);
            break;
        }
    return true;
}

static bool show(const struct hoop_topo *topo, const struct request *request, const bool *shown)
{
    const struct hoop_topo_wanted wanted = {.shape = request->mode == TREES ? HOOP_TOPO_CHAIN : HOOP_TOPO_RING,
                                            .hosts = request->level > 0 ? (int)request->level : 1,
                                            .shown = shown};

    setlocale(LC_CTYPE, "");
    switch (request->mode) {
    case MATRIX:
    case MATRIX_PCI:
        show_matrix(topo, shown, stdout, request->mode == MATRIX_PCI, isatty(STDOUT_FILENO) == 1);
        break;
    case PEERS:
        show_peers(topo, shown, stdout, request->what);
        break;
    case NEAR_CPU:
        show_near_cpu(topo, shown, stdout, request->number);
        break;
    case NEAR_GPU:
        show_near_gpu(topo, shown, stdout, request->level);
        break;
    case BETWEEN:
        show_between(topo, shown, stdout);
        break;
    case NCCL:
        show_nccl(topo, shown, stdout);
        break;
    case TREE:
        show_tree(topo, shown, stdout, strcmp(nl_langinfo(CODESET), "UTF-8") == 0, isatty(STDOUT_FILENO) == 1);
        break;
    case JSON:
        show_json(topo, shown, stdout);
        break;
    case NCCL_XML:
        show_nccl_xml(topo, shown, stdout);
        break;
    case MEASURE:
        if (request->input == NULL)
            return show_measured(topo, stdout);
        fprintf(stderr, "hoop-topo: --measure is of this machine: leave out --input\n");
        return false;
    case OWN:
    case HWLOC:
        return write_form(topo, request->mode);
    case DOCTOR:
        return show_doctor(topo, shown, stdout, request->input == NULL);
    case SVG:
        show_svg(topo, shown, stdout);
        break;
    case DOT:
        show_dot(topo, shown, stdout);
        break;
    case RINGS:
    case TREES:
        return show_channels(topo, stdout, &wanted);
    case CHANNELS:
        return show_channel_table(topo, stdout, &wanted);
    }
    return true;
}

/* A copy of the value of a setting, to be freed; NULL: it is not set (or no memory). */
static char *setting_of(const char *name)
{
    struct hoop_setting setting;

    for (int i = 0; hoop_setting_get(i, &setting); i++)
        if (strcmp(setting.name, name) == 0 && *setting.value != '\0')
            return strdup(setting.value);
    return NULL;
}

/* What HOOP_TOPO_FILE names stands for this machine, as it does where communicators look for rings, but not in a mode about what only this
 * machine can tell; and HOOP_TOPO_FACTS goes over it. */
static void ask_settings(struct request *request, const char *file, const char *facts)
{
    if (file != NULL && request->input == NULL && request->mode != DOCTOR && request->mode != MEASURE) {
        fprintf(stderr, "hoop-topo: HOOP_TOPO_FILE: this is %s, not this machine\n", file);
        request->input = file;
    }
    if (facts != NULL && request->facts == NULL) {
        fprintf(stderr, "hoop-topo: HOOP_TOPO_FACTS: with the facts of %s\n", facts);
        request->facts = facts;
    }
}

static enum hoop_status read_machine(const struct request *request, struct hoop_topo **topo, bool *reported)
{
    enum hoop_status status =
        request->input != NULL ? load_archive(topo, request->input, reported) : hoop_topo_detect_devices(topo);

    return status == HOOP_OK && request->facts != NULL ? hoop_topo_override(*topo, request->facts) : status;
}

/* Read the machine, and show it. */
static bool run(const struct request *request)
{
    struct hoop_topo *topo = NULL;
    bool reported = false, done = false;

    if (read_machine(request, &topo, &reported) == HOOP_OK) {
        bool *shown = request->devices[0] != '\0' ? select_devices(topo, request->devices) : NULL;

        done = (request->devices[0] == '\0' || shown != NULL) && show(topo, request, shown);
        free(shown);
    } else if (!reported) {
        fprintf(stderr, "hoop-topo: %s\n", hoop_last_error(NULL));
    }
    hoop_topo_free(topo);
    return done;
}

int main(int argc, char **argv)
{
    struct request request = {.mode = MATRIX, .level = -1};

    translate(argc, argv);
    if (hoop_manual_parse(&manual, argc, argv, 0, &request) != 0)
        return EXIT_FAILURE;
    char *file = setting_of("TOPO_FILE"), *facts = setting_of("TOPO_FACTS");
    ask_settings(&request, file, facts);
    const bool done = run(&request);
    free(file);
    free(facts);
    if (!done)
        return EXIT_FAILURE;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("hoop-topo: standard output");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
