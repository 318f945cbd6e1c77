# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/boot/boot.h lib/boot/id.c lib/boot/id.h lib/boot/join.c \
	lib/boot/launch.c lib/boot/launch.h lib/boot/launchers.def lib/boot/meeting.c lib/boot/meeting.h \
	lib/boot/message.c lib/boot/message.h lib/boot/rendezvous.c lib/boot/rendezvous.h lib/boot/share.c lib/boot/share.h
