// SPDX-License-Identifier: BSD-3-Clause
/* A program that any launcher starts: it joins as its environment says, twice, sums, and tells who it is.
 *
 * launched [id FILE]: with id, rank 0 makes an id, writes it to FILE and goes by it; the others wait for FILE. */
#include <hoop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what)
{
    fprintf(stderr, "launched: %s: %s\n", what, hoop_last_error(NULL));
    return 1;
}

static int give_id(const char *path)
{
    char text[HOOP_UNIQUE_ID_TEXT], temporary[4096];
    struct hoop_unique_id id;

    if (hoop_unique_id_create(&id) != HOOP_OK || hoop_unique_id_print(&id, text, sizeof text) != HOOP_OK)
        return fail("making an id");
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *file = fopen(temporary, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0 || rename(temporary, path) != 0)
        return fail("writing the id");
    setenv("HOOP_ID", text, 1);
    return 0;
}

static int take_id(const char *path)
{
    char text[HOOP_UNIQUE_ID_TEXT] = "";

    for (int i = 0; i < 2000 && access(path, R_OK) != 0; i++)
        usleep(10000);
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(text, sizeof text, file) == NULL)
        return fail("reading the id");
    fclose(file);
    setenv("HOOP_ID", text, 1);
    return 0;
}

/* Rank r gives r + i; the sum is known. */
static int sum(struct hoop_comm *comm)
{
    enum { COUNT = 5000 };
    static int64_t data[COUNT];
    const int n = hoop_comm_size(comm);

    for (int i = 0; i < COUNT; i++)
        data[i] = hoop_comm_rank(comm) + i;
    if (hoop_all_reduce(data, data, COUNT, HOOP_I64, HOOP_SUM, comm, NULL) != HOOP_OK)
        return fail("summing");
    for (int i = 0; i < COUNT; i++)
        if (data[i] != (int64_t)n * (n - 1) / 2 + (int64_t)n * i) {
            fprintf(stderr, "launched: rank %d: element %d is %lld\n", hoop_comm_rank(comm), i, (long long)data[i]);
            return 1;
        }
    return 0;
}

int main(int argc, char **argv)
{
    const char *rank = getenv("HOOP_RANK");
    struct hoop_launcher launcher;
    struct hoop_comm *comm[2] = {NULL};
    const int meetings = argc > 2 ? 1 : 2; /* an id is used once */
    int ranks = 0, own = 0;

    if (argc > 2 && (rank && strcmp(rank, "0") == 0 ? give_id(argv[2]) : take_id(argv[2])) != 0)
        return 1;
    if (hoop_launcher_get(&launcher) != HOOP_OK)
        return fail("looking for a launcher");
    for (int i = 0; i < meetings; i++) {
        if (hoop_comm_init_env(&comm[i]) != HOOP_OK)
            return fail("joining");
        if (sum(comm[i]) != 0)
            return 1;
    }
    own = hoop_comm_rank(comm[0]);
    ranks = hoop_comm_size(comm[0]);
    for (int i = 0; i < meetings; i++)
        if (hoop_comm_destroy(comm[i]) != HOOP_OK)
            return fail("parting");
    printf("launched: rank %d of %d by %s\n", own, ranks, launcher.name);
    return 0;
}
