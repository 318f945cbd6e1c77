# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/health/council.c lib/health/council.h lib/health/far.c lib/health/far.h lib/health/monitor.c lib/health/monitor.h lib/health/verdict.c lib/health/verdict.h
