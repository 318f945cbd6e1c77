# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/exec/direct.c lib/exec/direct.h lib/exec/flat.c lib/exec/flat.h lib/exec/host.c lib/exec/host.h lib/exec/stream.c lib/exec/stream.h \
	lib/exec/wait.c lib/exec/wait.h lib/exec/device/device.h
