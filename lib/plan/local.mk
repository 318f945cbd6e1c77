# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/plan/build.c lib/plan/build.h lib/plan/fuse.c lib/plan/names.c lib/plan/bind.c \
	lib/plan/bind.h lib/plan/cache.c lib/plan/cache.h
