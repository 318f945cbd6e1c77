# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += tools/status/hoop-status
tools_status_hoop_status_SOURCES = tools/status/main.c tools/status/status.h tools/status/find.c tools/status/text.c tools/status/json.c
tools_status_hoop_status_CPPFLAGS = $(TOOL_CPPFLAGS)
tools_status_hoop_status_LDADD = $(TOOL_LIBS)

man1_MANS += tools/status/hoop-status.1
completion_DATA += tools/status/hoop-status.bash
tools/status/hoop-status.1: tools/status/hoop-status$(EXEEXT)
	$(TOOL_MAN)
tools/status/hoop-status.bash: tools/status/hoop-status$(EXEEXT)
	$(TOOL_COMPLETION)
