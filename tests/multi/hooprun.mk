# SPDX-License-Identifier: BSD-3-Clause
TESTS += tests/multi/test_hooprun.sh tests/multi/test_hosts.sh tests/multi/test_bench.sh tests/multi/test_bench_device.sh
EXTRA_DIST += tests/multi/test_hooprun.sh tests/multi/test_hosts.sh tests/multi/test_bench.sh tests/multi/test_bench_device.sh

# Loaded before libhoop it spoils results (-rpath makes it a shared library). No sanitizer: shells load it, too.
check_LTLIBRARIES += libcorrupt.la
libcorrupt_la_SOURCES = tests/multi/corrupt.c
libcorrupt_la_CFLAGS = -std=c11 $(WARN_CFLAGS)
libcorrupt_la_LDFLAGS = -module -avoid-version -rpath /nowhere
libcorrupt_la_LIBADD = -ldl
