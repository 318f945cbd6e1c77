# SPDX-License-Identifier: BSD-3-Clause
include $(srcdir)/tools/common/local.mk
include $(srcdir)/tools/run/local.mk
include $(srcdir)/tools/bench/local.mk
include $(srcdir)/tools/plan/local.mk
include $(srcdir)/tools/topo/local.mk
include $(srcdir)/tools/info/local.mk
include $(srcdir)/tools/status/local.mk
include $(srcdir)/tools/lint/local.mk
