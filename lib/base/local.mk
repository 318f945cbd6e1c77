# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/base/alloc.c lib/base/alloc.h lib/base/arena.c lib/base/arena.h lib/base/clock.h \
	lib/base/fault.h lib/base/faults.def \
	lib/base/file.c lib/base/file.h \
	lib/base/log.c lib/base/log.h lib/base/settings.c lib/base/settings.h lib/base/settings.def \
	lib/base/status.c lib/base/status.h
if FAULTS
libhoop_core_la_SOURCES += lib/base/fault.c
endif
