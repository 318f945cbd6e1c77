# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/boot/boot.h lib/boot/id.c lib/boot/id.h lib/boot/join.c \
	lib/boot/launch.c lib/boot/launch.h lib/boot/launch_meet.c lib/boot/launchers.def lib/boot/pmi.c lib/boot/pmi.h \
	lib/boot/pmix.h lib/boot/place.c lib/boot/place.h lib/boot/meeting.c lib/boot/meeting.h \
	lib/boot/message.c lib/boot/message.h lib/boot/rendezvous.c lib/boot/rendezvous.h lib/boot/share.c lib/boot/share.h

# Apart, since it alone sees the headers of PMIx.
noinst_LTLIBRARIES += libhoop_pmix.la
libhoop_pmix_la_SOURCES = lib/boot/pmix.c
libhoop_pmix_la_CPPFLAGS = $(libhoop_core_la_CPPFLAGS) $(PMIX_CFLAGS)
libhoop_core_la_LIBADD += libhoop_pmix.la
