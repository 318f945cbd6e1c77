# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/wire/auth.c lib/wire/auth.h lib/wire/cursor.c lib/wire/cursor.h \
	lib/wire/give.c lib/wire/give.h lib/wire/iface.c lib/wire/iface.h lib/wire/sock.c lib/wire/sock.h \
	lib/wire/unixfd.c lib/wire/unixfd.h
