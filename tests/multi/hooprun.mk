# SPDX-License-Identifier: BSD-3-Clause
TESTS += tests/multi/test_hooprun.sh tests/multi/test_hosts.sh tests/multi/test_status.sh tests/multi/test_bench.sh tests/multi/test_bench_device.sh
EXTRA_DIST += tests/multi/test_hooprun.sh tests/multi/test_hosts.sh tests/multi/test_status.sh tests/multi/test_bench.sh tests/multi/test_bench_device.sh

# Loaded before libhoop it spoils results (-rpath makes it a shared library). No sanitizer: shells load it, too.
check_LTLIBRARIES += libcorrupt.la
libcorrupt_la_SOURCES = tests/multi/corrupt.c
libcorrupt_la_CFLAGS = -std=c11 $(WARN_CFLAGS)
libcorrupt_la_LDFLAGS = -module -avoid-version -rpath /nowhere
libcorrupt_la_LIBADD = -ldl

# One program under every launcher there is; each test is skipped where its launcher is not installed.
launcher_tests = tests/multi/test_launchers.sh tests/multi/test_mpirun.sh tests/multi/test_hydra.sh tests/multi/test_slurm.sh
TESTS += $(launcher_tests)
EXTRA_DIST += $(launcher_tests) tests/multi/launch.sh
check_PROGRAMS += tests/multi/launched
tests_multi_launched_SOURCES = tests/multi/launched.c
tests_multi_launched_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_launched_LDADD = $(TEST_LIBS)

# What test_hosts.sh lets go on without its dead.
check_PROGRAMS += tests/multi/survivor
tests_multi_survivor_SOURCES = tests/multi/survivor.c
tests_multi_survivor_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_survivor_LDADD = $(TEST_LIBS)
