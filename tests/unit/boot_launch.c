// SPDX-License-Identifier: BSD-3-Clause
/* Launchers: environments as the launchers set them, and what is made of each. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "boot/launch.h"
#include "harness.h"

enum { VARIABLES = 24 };

/* HOOP_ID=@ stands for a good id, HOOP_SECRET=@ for a long secret. */
struct environment {
    const char *name;
    const char *variables[VARIABLES];
    enum hoop_status status;
    const char *launcher;
    int rank, ranks, local_rank, local_size;
    const char *says; /* a part of the error, or of the way to an id */
};

#define OPEN_MPI                                                                        \
    "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=0", \
        "OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_COMM_WORLD_NODE_RANK=0", "PMIX_RANK=2", "PMIX_NAMESPACE=1234567890"
#define TORCHRUN                                                                                             \
    "RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4", "GROUP_RANK=0", "MASTER_ADDR=127.0.0.1", \
        "MASTER_PORT=29400", "TORCHELASTIC_RUN_ID=none"
#define SRUN                                                                                           \
    "SLURM_PROCID=3", "SLURM_NTASKS=4", "SLURM_NPROCS=4", "SLURM_STEP_NUM_TASKS=4", "SLURM_LOCALID=1", \
        "SLURM_NODEID=1", "SLURM_JOB_ID=17", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_NODES=2",              \
        "SLURM_STEP_NODELIST=n[07-08]"
#define SECRET "HOOP_SECRET=@"
#define BATCH \
    "SLURM_PROCID=0", "SLURM_NTASKS=4", "SLURM_LOCALID=0", "SLURM_NODEID=0", "SLURM_JOB_ID=17", "SLURM_NNODES=1"
#define HOOPRUN "HOOP_RANK=1", "HOOP_SIZE=2", "HOOP_LOCAL_RANK=1", "HOOP_LOCAL_SIZE=2", "HOOP_ID=@"

static const struct environment environments[] = {
    {"nothing", {NULL}, HOOP_OK, "none", 0, 1, -1, -1, NULL},
    {"hooprun", {HOOPRUN}, HOOP_OK, "hooprun", 1, 2, 1, 2, NULL},
    {"hooprun inside srun", {HOOPRUN, SRUN}, HOOP_OK, "hooprun", 1, 2, 1, 2, NULL},
    {"hoop by hand", {"HOOP_RANK=0", "HOOP_SIZE=2", "HOOP_ID=@"}, HOOP_OK, "hooprun", 0, 2, -1, -1, NULL},
    {"hoop, one rank", {"HOOP_RANK=0", "HOOP_SIZE=1"}, HOOP_OK, "hooprun", 0, 1, -1, -1, NULL},
    {"hoop, no id", {"HOOP_RANK=0", "HOOP_SIZE=2"}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "HOOP_ID is not"},
    {"hoop, no size",
     {"HOOP_RANK=0", "HOOP_ID=@"},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "HOOP_RANK is set, but HOOP_SIZE is not"},
    {"hoop, no rank",
     {"HOOP_SIZE=2", "HOOP_ID=@"},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "HOOP_SIZE is set, but HOOP_RANK is not"},
    {"hoop, only id", {"HOOP_ID=@"}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "HOOP_RANK and HOOP_SIZE are not"},
    {"hoop, empty size", {"HOOP_RANK=0", "HOOP_SIZE="}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "HOOP_SIZE is not"},
    {"rank too large",
     {"HOOP_RANK=2", "HOOP_SIZE=2", "HOOP_ID=@"},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "HOOP_RANK=2 is not"},
    {"rank no number",
     {"HOOP_RANK=x", "HOOP_SIZE=2", "HOOP_ID=@"},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "HOOP_RANK=x is not"},
    {"negative rank", {"HOOP_RANK=-1", "HOOP_SIZE=2", "HOOP_ID=@"}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "from 0 to 1"},
    {"huge size", {"HOOP_RANK=0", "HOOP_SIZE=4294967298"}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "HOOP_SIZE=4294967298"},
    {"zero size", {"HOOP_RANK=0", "HOOP_SIZE=0"}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "from 1 to"},
    {"local rank too large",
     {"HOOP_RANK=0", "HOOP_SIZE=2", "HOOP_LOCAL_RANK=2", "HOOP_LOCAL_SIZE=2", "HOOP_ID=@"},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "HOOP_LOCAL_RANK=2"},
    {"damaged id",
     {"HOOP_RANK=0", "HOOP_SIZE=2", "HOOP_ID=hoop1:x"},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "HOOP_ID is damaged"},

    {"torchrun",
     {TORCHRUN},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "started by torchrun as rank 1 of 4: no secret is known to all ranks"},
    {"torchrun and id", {TORCHRUN, "HOOP_ID=@"}, HOOP_OK, "torchrun", 1, 4, 1, 4, NULL},
    {"torchrun, a secret",
     {TORCHRUN, SECRET},
     HOOP_OK,
     "torchrun",
     1,
     4,
     1,
     4,
     "serves at 127.0.0.1 port 29401 (MASTER_ADDR, and the port after MASTER_PORT), with the secret of HOOP_SECRET"},
    {"torchrun, another place",
     {TORCHRUN, SECRET, "HOOP_MEET=[fd00::1]:7"},
     HOOP_OK,
     "torchrun",
     1,
     4,
     1,
     4,
     "at fd00::1 port 7 "},
    {"torchrun, no place",
     {"RANK=0", "WORLD_SIZE=2", SECRET},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "RANK is set, but MASTER_ADDR is not"},
    {"torchrun, no port",
     {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", SECRET},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "MASTER_ADDR is set, but MASTER_PORT is not"},
    {"torchrun, no address",
     {"RANK=0", "WORLD_SIZE=2", "MASTER_PORT=7", SECRET},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "MASTER_PORT is set, but MASTER_ADDR is not"},
    {"torchrun, only a place",
     {"MASTER_ADDR=a", "MASTER_PORT=7"},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "MASTER_ADDR is set, but RANK and WORLD_SIZE are not"},
    {"torchrun, last port",
     {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=65535", SECRET},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "from 1 to 65534"},
    {"two secrets", {TORCHRUN, SECRET, "HOOP_INSECURE=1"}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "more than one is set"},
    {"a short secret",
     {TORCHRUN, "HOOP_SECRET=password"},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "HOOP_SECRET holds 8 characters"},
    {"no file",
     {TORCHRUN, "HOOP_SECRET_FILE=/nowhere/x"},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "HOOP_SECRET_FILE=/nowhere/x cannot"},
    {"no such file", {TORCHRUN, "HOOP_SECRET_FILE=/dev/null"}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "is no file"},
    {"an open file", {TORCHRUN, "HOOP_SECRET_FILE=/etc/passwd"}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "chmod 600"},
    {"a bad place",
     {TORCHRUN, SECRET, "HOOP_MEET=fd00::1:7"},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "HOOP_MEET=fd00::1:7: give host:port"},
    {"hoop by hand, a place",
     {"HOOP_RANK=0", "HOOP_SIZE=2", "HOOP_MEET=n1:29500", SECRET},
     HOOP_OK,
     "hooprun",
     0,
     2,
     -1,
     -1,
     "serves at n1 port 29500"},
    {"torchrun, one", {"RANK=0", "WORLD_SIZE=1", "LOCAL_RANK=0"}, HOOP_OK, "torchrun", 0, 1, 0, -1, NULL},
    {"torchrun, no rank", {"WORLD_SIZE=2"}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "WORLD_SIZE is set, but RANK is not"},
    {"torchrun, no size", {"RANK=2"}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "RANK is set, but WORLD_SIZE is not"},
    {"torchrun inside srun", {TORCHRUN, SRUN}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "torchrun as rank 1 of 4: no secret"},

    {"Open MPI without PMIx",
     {"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4"},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "started by Open MPI as rank 2 of 4, but it gives no key store (PMIX_NAMESPACE is not set)"},
    {"Open MPI without PMIx, a place",
     {"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4", "HOOP_MEET=n1:29500", SECRET},
     HOOP_OK,
     "Open MPI",
     2,
     4,
     -1,
     -1,
     "serves at n1 port 29500 (HOOP_MEET), with the secret of HOOP_SECRET"},
    {"Open MPI and id", {OPEN_MPI, "HOOP_ID=@"}, HOOP_OK, "Open MPI", 2, 4, 0, 2, NULL},
    {"Open MPI, no size", {"OMPI_COMM_WORLD_RANK=1"}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "OMPI_COMM_WORLD_SIZE is not"},

    {"hydra",
     {"PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2", "PMI_FD=9", "HOOP_ID=@"},
     HOOP_OK,
     "PMI",
     1,
     2,
     1,
     2,
     NULL},
    {"hydra, one", {"PMI_RANK=0", "PMI_SIZE=1", "PMI_FD=9"}, HOOP_OK, "PMI", 0, 1, -1, -1, NULL},

    {"hydra's store",
     {"PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2", "PMI_FD=9"},
     HOOP_OK,
     "PMI",
     1,
     2,
     1,
     2,
     "key store (PMI-1 at PMI_FD=9)"},
    {"hydra, no store", {"PMI_RANK=1", "PMI_SIZE=2"}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "PMI_FD is not set"},
    {"hydra, bad store",
     {"PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=x"},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "PMI_FD=x is not allowed"},
    {"torchrun inside hydra",
     {TORCHRUN, "PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=9", SECRET},
     HOOP_OK,
     "torchrun",
     1,
     4,
     1,
     4,
     "the port after MASTER_PORT"},

    {"srun, no secret", {SRUN}, HOOP_ERR_SETUP, 0, 0, 0, 0, 0, "started by Slurm as rank 3 of 4: no secret"},
    {"srun, a secret", {SRUN, SECRET}, HOOP_OK, "Slurm", 3, 4, 1, -1, "serves at n07 port 2"},
    {"srun, insecure", {SRUN, "HOOP_INSECURE=1"}, HOOP_OK, "Slurm", 3, 4, 1, -1, "no secret"},
    {"srun, a place",
     {SRUN, SECRET, "MASTER_ADDR=n9", "MASTER_PORT=500"},
     HOOP_OK,
     "Slurm",
     3,
     4,
     1,
     -1,
     "n9 port 501"},
    {"srun, no list",
     {"SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_STEP_ID=3", SECRET},
     HOOP_ERR_SETUP,
     0,
     0,
     0,
     0,
     0,
     "SLURM_STEP_NODELIST is not"},
    {"srun and id", {SRUN, "HOOP_ID=@"}, HOOP_OK, "Slurm", 3, 4, 1, -1, NULL},
    {"srun with pmi2", {SRUN, "PMI_FD=7", "PMI_RANK=3", "PMI_SIZE=4", "HOOP_ID=@"}, HOOP_OK, "PMI", 3, 4, -1, -1, NULL},
    {"srun of one",
     {"SLURM_PROCID=0", "SLURM_NTASKS=1", "SLURM_LOCALID=0", "SLURM_STEP_ID=3"},
     HOOP_OK,
     "Slurm",
     0,
     1,
     0,
     -1,
     NULL},
    {"shell of a batch job", {BATCH}, HOOP_OK, "none", 0, 1, -1, -1, NULL},
    {"shell of an allocation", {"SLURM_NTASKS=4", "SLURM_JOB_ID=17"}, HOOP_OK, "none", 0, 1, -1, -1, NULL},
    {"hooprun in a batch job", {HOOPRUN, BATCH}, HOOP_OK, "hooprun", 1, 2, 1, 2, NULL},
};

static struct hoop_unique_id id;
static char id_text[HOOP_UNIQUE_ID_TEXT];

static void set(const char *variable)
{
    char name[64] = "";
    const char *value = strchr(variable, '=') + 1;

    memcpy(name, variable, (size_t)(value - variable - 1));
    if (strcmp(variable, SECRET) == 0)
        value = "0123456789abcdef0123456789abcdef";
    setenv(name, strcmp(value, "@") == 0 ? id_text : value, 1);
}

START_TEST(recorded_environment)
{
    const struct environment *e = &environments[_i];
    struct hoop_launch launch = {.rank = -7};
    char how[HOOP_LAUNCH_HOW];

    ck_assert_int_eq(hoop_unique_id_create(&id), HOOP_OK);
    ck_assert_int_eq(hoop_unique_id_print(&id, id_text, sizeof id_text), HOOP_OK);
    clearenv();
    bool with_id = false;
    for (int i = 0; i < VARIABLES && e->variables[i]; i++) {
        set(e->variables[i]);
        with_id = with_id || strcmp(e->variables[i], "HOOP_ID=@") == 0;
    }
    const enum hoop_status status = hoop_launch_find(&launch);
    ck_assert_msg(status == e->status, "%s: status %d: %s", e->name, status, hoop_error_text());
    if (status != HOOP_OK) {
        ck_assert_msg(strstr(hoop_error_text(), e->says) != NULL, "%s: %s", e->name, hoop_error_text());
        ck_assert_ptr_null(strstr(hoop_error_text(), "hoop1:"));
        ck_assert_ptr_null(strstr(hoop_error_text(), "password"));
        ck_assert_int_eq(launch.rank, -7);
        return;
    }
    ck_assert_str_eq(launch.launcher, e->launcher);
    ck_assert_msg(launch.rank == e->rank && launch.ranks == e->ranks, "%s: %d of %d", e->name, launch.rank,
                  launch.ranks);
    ck_assert_msg(launch.local_rank == e->local_rank && launch.local_size == e->local_size, "%s: local %d of %d",
                  e->name, launch.local_rank, launch.local_size);
    ck_assert((launch.way == HOOP_LAUNCH_ID) == with_id);
    hoop_launch_describe(&launch, how);
    ck_assert_msg(e->says == NULL || strstr(how, e->says) != NULL, "%s: %s", e->name, how);
    if (with_id)
        ck_assert_mem_eq(&launch.id, &id, sizeof id);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("boot/launch");
    TCase *tests = tcase_create("launch");

    tcase_add_loop_test(tests, recorded_environment, 0, sizeof environments / sizeof *environments);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
