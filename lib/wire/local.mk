# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/wire/cursor.c lib/wire/cursor.h
