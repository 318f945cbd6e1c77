# SPDX-License-Identifier: BSD-3-Clause
pkgconfigdir = $(libdir)/pkgconfig
nodist_pkgconfig_DATA = lib/hoop.pc
EXTRA_DIST += lib/README.md lib/libhoop.map lib/hoop.pc.in

include $(srcdir)/lib/base/local.mk
include $(srcdir)/lib/wire/local.mk
include $(srcdir)/lib/mem/local.mk
include $(srcdir)/lib/dtype/local.mk
include $(srcdir)/lib/topo/local.mk
include $(srcdir)/lib/plan/local.mk
include $(srcdir)/lib/algo/local.mk
include $(srcdir)/lib/exec/local.mk
include $(srcdir)/lib/boot/local.mk
include $(srcdir)/lib/health/local.mk
include $(srcdir)/lib/obs/local.mk
include $(srcdir)/lib/comm/local.mk
