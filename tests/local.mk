# SPDX-License-Identifier: BSD-3-Clause
# What every test program gets: the library's inner functions and check.
TEST_CPPFLAGS = $(INTERNAL_CPPFLAGS) $(CHECK_CFLAGS) -I$(top_srcdir)/tests
TEST_LIBS = libhoop_core.la $(CHECK_LIBS) $(HWLOC_LIBS) $(SODIUM_LIBS) -lm

include $(srcdir)/tests/unit/base.mk
include $(srcdir)/tests/unit/wire.mk
include $(srcdir)/tests/unit/boot.mk
include $(srcdir)/tests/unit/mem.mk
include $(srcdir)/tests/unit/dtype.mk
include $(srcdir)/tests/unit/topo.mk
include $(srcdir)/tests/unit/exec.mk
include $(srcdir)/tests/unit/trainer.mk
include $(srcdir)/tests/plan/local.mk
include $(srcdir)/tests/conform/local.mk
include $(srcdir)/tests/model/local.mk
include $(srcdir)/tests/multi/local.mk
include $(srcdir)/tests/fuzz/local.mk
include $(srcdir)/tests/install/local.mk
