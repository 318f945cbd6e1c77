# SPDX-License-Identifier: BSD-3-Clause
# The fake CUDA driver; a build without shared libraries has none, and the tests on it are skipped. -rpath makes it a shared library; its name is the real driver's.
EXTRA_DIST += tests/fakecuda/machines/box
if SHARED
check_LTLIBRARIES += tests/fakecuda/libcuda.la
endif
tests_fakecuda_libcuda_la_SOURCES = tests/fakecuda/abi.h tests/fakecuda/context.c tests/fakecuda/copy.c tests/fakecuda/device.c \
	tests/fakecuda/driver.c tests/fakecuda/engine.c tests/fakecuda/entries.def tests/fakecuda/event.c tests/fakecuda/event.h \
	tests/fakecuda/fake.h tests/fakecuda/graph.c tests/fakecuda/ipc.c tests/fakecuda/machine.c tests/fakecuda/memory.c \
	tests/fakecuda/module.c tests/fakecuda/options.def tests/fakecuda/pointer.c tests/fakecuda/queue.h tests/fakecuda/share.c \
	tests/fakecuda/stream.c tests/fakecuda/test_kernels.c tests/fakecuda/test_kernels.h tests/fakecuda/vmm.c \
	tests/fakecuda/window.c
tests_fakecuda_libcuda_la_CPPFLAGS = $(INTERNAL_CPPFLAGS)
tests_fakecuda_libcuda_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
tests_fakecuda_libcuda_la_LDFLAGS = $(AM_LDFLAGS) -rpath /nowhere -shared -version-info 1:0:0 -Wl,-Bsymbolic
tests_fakecuda_libcuda_la_LIBADD = libhoop_device.la

if SHARED
if HAVE_CHECK
check_PROGRAMS += tests/fakecuda/rules
TESTS += tests/fakecuda/rules
tests_fakecuda_rules_SOURCES = tests/fakecuda/calls.h tests/fakecuda/rules.c tests/fakecuda/rules.h tests/fakecuda/rules_share.c \
	tests/fakecuda/rules_work.c
tests_fakecuda_rules_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fakecuda_rules_LDADD = $(CHECK_LIBS)
tests_fakecuda_rules_DEPENDENCIES = tests/fakecuda/libcuda.la
endif
endif
