// SPDX-License-Identifier: BSD-3-Clause
/* Counts beyond 2^31: two ranks all-reduce 2^31 + 17 bytes in place. Needs 9 GiB of free memory, else it is skipped. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"
#include "mem/room.h"
#include "tsan.h"

static const size_t count = ((size_t)1 << 31) + 17;

/* Not periodic in any power of two, so that a wrapped index shows. */
static unsigned char value(int rank, size_t i)
{
    return (unsigned char)((i % 251) + (size_t)rank * 3);
}

static int body(struct harness_rank *self)
{
    struct hoop_comm *comm = harness_join(self);
    unsigned char *data;

    if (comm == NULL)
        return 1;
    enum hoop_status status = hoop_mem_alloc(comm, (void **)&data, count);
    for (size_t i = 0; status == HOOP_OK && i < count; i++)
        data[i] = value(self->rank, i);
    if (status == HOOP_OK)
        status = hoop_all_reduce(data, data, count, HOOP_U8, HOOP_SUM, comm, NULL);
    if (status != HOOP_OK)
        return harness_tell(self, status, comm);
    for (size_t i = 0; i < count; i++)
        if (data[i] != (unsigned char)(value(0, i) + value(1, i))) {
            snprintf(self->report->text, sizeof self->report->text, "element %zu is %d", i, data[i]);
            return 1;
        }
    return hoop_comm_destroy(comm) == HOOP_OK ? 0 : 1;
}

START_TEST(more_than_two_to_the_31)
{
    harness_run(2, body, NULL, 180);
}
END_TEST

int main(void)
{
    if (UNDER_TSAN) {
        printf("skipped: ThreadSanitizer sees no race between processes, and takes four bytes of shadow for each of "
               "theirs\n");
        return 77;
    }
    if (hoop_room_check((size_t)9 << 30, "this test") != HOOP_OK) {
        printf("skipped: %s\n", hoop_last_error(NULL));
        return 77;
    }
    Suite *suite = suite_create("huge counts");
    TCase *tests = tcase_create("u8");

    tcase_set_timeout(tests, 200);
    tcase_add_test(tests, more_than_two_to_the_31);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
