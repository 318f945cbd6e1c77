# SPDX-License-Identifier: BSD-3-Clause
# What every test program gets: the library's inner functions and check.
TEST_CPPFLAGS = $(INTERNAL_CPPFLAGS) $(CHECK_CFLAGS) -I$(top_srcdir)/tests
TEST_LIBS = tests/libhelp.a libhoop_core.la $(CHECK_LIBS) $(HWLOC_LIBS) $(SODIUM_LIBS) $(EXPAT_LIBS) -lm

# What several tests use, compiled once; a test gets of it what it calls.
if HAVE_CHECK
check_LIBRARIES = tests/libhelp.a
endif
tests_libhelp_a_SOURCES = tests/cases.c tests/cases.h tests/harness.c tests/harness.h tests/numbers.c tests/numbers.h \
	tests/simulated.c tests/simulated.h tests/unit/dtype_reference.c tests/unit/dtype_reference.h
if CUDA
tests_libhelp_a_SOURCES += tests/cuda_help.c tests/cuda_help.h tests/device_space.c tests/device_space.h
endif
tests_libhelp_a_CPPFLAGS = $(TEST_CPPFLAGS)

# How `make check` runs a test: under a hard limit, knowing where the sources and the programs are. A test that cannot run
# here exits with 77 and says why.
TEST_EXTENSIONS = .sh
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/capped
SH_LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/capped bash
AM_TESTS_ENVIRONMENT = TEST_SOURCE='$(abs_top_srcdir)'; TEST_BUILD='$(abs_top_builddir)'; CC='$(CC)'; CFLAGS='$(CFLAGS)'; \
	MAKE='$(MAKE)'; CK_DEFAULT_TIMEOUT=$${CK_DEFAULT_TIMEOUT-60}; \
	export TEST_SOURCE TEST_BUILD CC CFLAGS MAKE CK_DEFAULT_TIMEOUT;
EXTRA_DIST += tests/capped tests/tsan.h

# Build what the tests need without running them.
.PHONY: check-programs
check-programs: $(check_PROGRAMS) $(check_LTLIBRARIES)

include $(srcdir)/tests/unit/base.mk
include $(srcdir)/tests/unit/wire.mk
include $(srcdir)/tests/unit/boot.mk
include $(srcdir)/tests/unit/mem.mk
include $(srcdir)/tests/unit/cuda.mk
include $(srcdir)/tests/unit/dtype.mk
include $(srcdir)/tests/unit/topo.mk
include $(srcdir)/tests/unit/exec.mk
include $(srcdir)/tests/unit/device.mk
include $(srcdir)/tests/unit/trainer.mk
include $(srcdir)/tests/unit/transport.mk
include $(srcdir)/tests/plan/local.mk
include $(srcdir)/tests/conform/local.mk
include $(srcdir)/tests/model/local.mk
include $(srcdir)/tests/multi/local.mk
include $(srcdir)/tests/fuzz/local.mk
include $(srcdir)/tests/vm/local.mk
include $(srcdir)/tests/install/local.mk
include $(srcdir)/tests/fakecuda/local.mk
include $(srcdir)/tests/perf/local.mk
include $(srcdir)/tests/gpu/local.mk
include $(srcdir)/tests/long.mk
