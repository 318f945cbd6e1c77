# SPDX-License-Identifier: BSD-3-Clause
include $(srcdir)/tests/multi/hooprun.mk
