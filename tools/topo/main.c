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

enum mode { MATRIX, MATRIX_PCI, NCCL, TREE, JSON };

enum { KEY_INPUT = 0x100, KEY_PCI, KEY_NCCL, KEY_TREE, KEY_JSON };

struct request {
    enum mode mode;
    const char *input;
};

static const struct argp_option options[] = {
    {"matrix", 'm', NULL, 0,
     "matrix of the paths between GPUs and RDMA interfaces; without GPU, between NUMA nodes and all "
     "interfaces (the default)",
     0},
    {"matrix_pci", KEY_PCI, NULL, 0, "the same without GPU fabrics, also written -mp", 0},
    {"nccl", KEY_NCCL, NULL, 0, "matrix of the classes that NCCL and RCCL give the paths along PCIe", 0},
    {"tree", KEY_TREE, NULL, 0, "the machine as a tree: sockets, NUMA nodes, bridges, devices", 0},
    {"json", KEY_JSON, NULL, 0, "all nodes and links with the source of each fact; what is unknown is null", 0},
    {"input", KEY_INPUT, "FILE", 0,
     "show a recorded machine, not this one: XML of hwloc (lstopo FILE.xml), a topology file of NCCL or RCCL, a "
     "copy of /sys (a folder, or an archive such as hwloc-gather-topology makes), or "
     "synthetic:DESCRIPTION in hwloc's words",
     0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;

    switch (key) {
    case 'm':
        request->mode = MATRIX;
        return 0;
    case KEY_PCI:
        request->mode = MATRIX_PCI;
        return 0;
    case KEY_NCCL:
        request->mode = NCCL;
        return 0;
    case KEY_TREE:
        request->mode = TREE;
        return 0;
    case KEY_JSON:
        request->mode = JSON;
        return 0;
    case KEY_INPUT:
        request->input = argument;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "%s: no arguments are expected; a recorded machine is given by --input", argument);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp parser = {
    options,
    parse,
    NULL,
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
                 " hoop-topo --input box.xml -mp   show its matrix, PCIe only\n"},
    {"EXIT CODES", "0\tthe machine was shown\n"
                   "1\tit cannot be read, or the output cannot be written\n"
                   "2\twrong usage\n"},
    {NULL, NULL},
};

static const struct hoop_manual_words words[] = {{"input", "@file"}, {NULL, NULL}};

static const struct hoop_manual manual = {.name = "hoop-topo",
                                          .summary = "show the topology of the machine",
                                          .argp = &parser,
                                          .sections = sections,
                                          .words = words};

/* The option -mp is older than this program: two letters behind one dash. */
static void translate(int argc, char **argv)
{
    static char long_name[] = "--matrix_pci";

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-mp") == 0)
            argv[i] = long_name;
}

static void show(const struct hoop_topo *topo, enum mode mode)
{
    setlocale(LC_CTYPE, "");
    switch (mode) {
    case MATRIX:
    case MATRIX_PCI:
        show_matrix(topo, stdout, mode == MATRIX_PCI, isatty(STDOUT_FILENO) == 1);
        break;
    case NCCL:
        show_nccl(topo, stdout);
        break;
    case TREE:
        show_tree(topo, stdout, strcmp(nl_langinfo(CODESET), "UTF-8") == 0);
        break;
    case JSON:
        show_json(topo, stdout);
        break;
    }
}

int main(int argc, char **argv)
{
    struct request request = {.mode = MATRIX};
    struct hoop_topo *topo = NULL;
    bool reported = false;

    translate(argc, argv);
    if (hoop_manual_parse(&manual, argc, argv, 0, &request) != 0)
        return EXIT_FAILURE;
    const enum hoop_status status =
        request.input != NULL ? load_archive(&topo, request.input, &reported) : hoop_topo_detect_devices(&topo);
    if (status != HOOP_OK) {
        if (!reported)
            fprintf(stderr, "hoop-topo: %s\n", hoop_last_error(NULL));
        return EXIT_FAILURE;
    }
    show(topo, request.mode);
    hoop_topo_free(topo);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("hoop-topo: standard output");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
