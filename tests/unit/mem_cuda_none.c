// SPDX-License-Identifier: BSD-3-Clause
/* A machine without a CUDA driver. So that the test means the same everywhere, it runs itself again with a library path on which
 * libcuda.so.1 is no library. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mem/cuda_driver.h"

START_TEST(names_the_missing_library)
{
    const struct hoop_cuda_driver *driver = NULL;

    for (int call = 0; call < 2; call++) {
        hoop_fail(HOOP_OK, "an older text");
        ck_assert_int_eq(hoop_cuda_driver(&driver), HOOP_ERR_UNSUPPORTED);
        ck_assert_ptr_null(driver);
        ck_assert_msg(strncmp(hoop_error_text(), "there is no CUDA driver: ", 25) == 0 &&
                          strstr(hoop_error_text(), "libcuda.so.1") != NULL,
                      "call %d: %s", call, hoop_error_text());
    }
}
END_TEST

START_TEST(does_not_look_for_one_that_nobody_uses)
{
    const struct hoop_cuda_driver *driver = NULL;

    ck_assert_int_eq(hoop_cuda_driver_if_started(&driver), HOOP_ERR_UNSUPPORTED);
    ck_assert_str_eq(hoop_error_text(), "CUDA is not in use in this process");
}
END_TEST

START_TEST(tells_results_without_a_driver)
{
    ck_assert_int_eq(hoop_cuda_check(HOOP_CU_SUCCESS, "cuMemAlloc", 1), HOOP_OK);
    ck_assert_int_eq(hoop_cuda_check(HOOP_CU_OUT_OF_MEMORY, "cuMemAlloc", 1), HOOP_ERR_MEMORY);
    ck_assert_str_eq(hoop_error_text(),
                     "cuMemAlloc on CUDA device 1 failed: unknown result (2: the driver has no text for it)");
    ck_assert_int_eq(hoop_cuda_check(HOOP_CU_NOT_SUPPORTED, "cuMemCreate", -1), HOOP_ERR_UNSUPPORTED);
    ck_assert_str_eq(hoop_error_text(), "cuMemCreate failed: unknown result (801: the driver has no text for it)");
}
END_TEST

START_TEST(communicators_have_no_device)
{
    struct hoop_comm *comm = NULL;
    char *a, *b;
    int ordinal = 7;

    ck_assert_int_eq(hoop_comm_init_rank(&comm, 1, NULL, 0), HOOP_OK);
    ck_assert_int_eq(hoop_comm_device(comm, &ordinal), HOOP_OK);
    ck_assert_int_eq(ordinal, -1);
    ck_assert_int_eq(hoop_mem_alloc(comm, (void **)&a, 10), HOOP_OK);
    ck_assert_int_eq(hoop_mem_alloc_host(comm, (void **)&b, 10), HOOP_OK);
    memcpy(a, "in place", 9);
    ck_assert_int_eq(hoop_mem_copy(comm, b, a, 9), HOOP_OK);
    ck_assert_str_eq(b, "in place");
    ck_assert_int_eq(hoop_mem_copy(comm, b, NULL, 9), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_mem_free(comm, a), HOOP_OK);
    ck_assert_int_eq(hoop_mem_free(comm, b), HOOP_OK);
    ck_assert_int_eq(hoop_mem_free(comm, b), HOOP_ERR_ARG);
    ck_assert_int_eq(hoop_comm_destroy(comm), HOOP_OK);
}
END_TEST

START_TEST(lists_no_devices)
{
    struct hoop_device device = {.size = sizeof device};

    ck_assert_int_eq(hoop_device_driver(NULL, NULL, NULL), HOOP_ERR_UNSUPPORTED);
    ck_assert_int_eq(hoop_device_info(0, &device), HOOP_ERR_UNSUPPORTED);
    ck_assert_msg(strncmp(hoop_last_error(NULL), "there is no CUDA driver: ", 25) == 0, "%s", hoop_last_error(NULL));
    device.size = 0;
    ck_assert_int_eq(hoop_device_info(0, &device), HOOP_ERR_ARG);
}
END_TEST

/* One rank that cannot have the device that it wants fails all, with its reason. */
START_TEST(a_wanted_device_is_missed)
{
    struct hoop_comm *comm[3];

    setenv("HOOP_DEVICE", "cuda", 1);
    for (int ranks = 1; ranks <= 3; ranks += 2) {
        ck_assert_int_eq(hoop_comm_init_all(comm, ranks), HOOP_ERR_UNSUPPORTED);
        ck_assert_msg(strstr(hoop_last_error(NULL), "HOOP_DEVICE=cuda: there is no CUDA driver: ") != NULL, "%s",
                      hoop_last_error(NULL));
    }
    setenv("HOOP_DEVICE", "none", 1);
    ck_assert_int_eq(hoop_comm_init_all(comm, 1), HOOP_OK);
    ck_assert_int_eq(hoop_comm_destroy(comm[0]), HOOP_OK);
    unsetenv("HOOP_DEVICE");
}
END_TEST

/* Run again where libcuda.so.1 is a file that the loader refuses. Returns only on failure. */
static void run_again(char **arguments)
{
    char folder[] = "/tmp/hoop-test-XXXXXX", file[64];

    if (mkdtemp(folder) == NULL)
        return;
    snprintf(file, sizeof file, "%s/libcuda.so.1", folder);
    const int descriptor = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (descriptor < 0 || close(descriptor) != 0)
        return;
    setenv("LD_LIBRARY_PATH", folder, 1);
    setenv("TEST_WITHOUT_CUDA", folder, 1);
    execv("/proc/self/exe", arguments);
}

static void tidy(const char *folder)
{
    char file[64];

    snprintf(file, sizeof file, "%s/libcuda.so.1", folder);
    unlink(file);
    rmdir(folder);
}

int main(int count, char **arguments)
{
    const char *folder = getenv("TEST_WITHOUT_CUDA");

    (void)count;
    if (folder == NULL) {
        run_again(arguments);
        perror("mem_cuda_none");
        return 1;
    }
    Suite *suite = suite_create("cuda without a driver");
    TCase *cases = tcase_create("none");
    tcase_add_test(cases, names_the_missing_library);
    tcase_add_test(cases, does_not_look_for_one_that_nobody_uses);
    tcase_add_test(cases, tells_results_without_a_driver);
    tcase_add_test(cases, communicators_have_no_device);
    tcase_add_test(cases, lists_no_devices);
    tcase_add_test(cases, a_wanted_device_is_missed);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    tidy(folder);
    return failed != 0;
}
