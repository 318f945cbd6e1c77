# SPDX-License-Identifier: BSD-3-Clause
# What every program shares: its help, manual page and completion from one table (see manual.h).
noinst_LTLIBRARIES += libtools.la
libtools_la_SOURCES = tools/common/manual.c tools/common/manual.h tools/common/manual_page.c \
	tools/common/manual_completion.c tools/common/json.c tools/common/json.h

TOOL_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools/common
TOOL_LIBS = libtools.la libhoop.la

# Rules whose target is beside the program it describes.
TOOL_MAN = $(AM_V_GEN)./$(@:.1=)$(EXEEXT) --man >$@.tmp && mv -f $@.tmp $@
TOOL_COMPLETION = $(AM_V_GEN)./$(@:.bash=)$(EXEEXT) --completion >$@.tmp && mv -f $@.tmp $@

completiondir = $(datadir)/bash-completion/completions
completion_DATA =
CLEANFILES += $(man1_MANS) $(completion_DATA)
