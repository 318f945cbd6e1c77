# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += tools/info/hoop-info
tools_info_hoop_info_SOURCES = tools/info/main.c tools/info/info.h tools/info/facts.c tools/info/devices.c tools/info/cgroup.c
tools_info_hoop_info_CPPFLAGS = $(TOOL_CPPFLAGS) -DHOOP_BUILD_CFLAGS='"$(CFLAGS)"' -DHOOP_BUILD_SANITIZE='"$(SANITIZE_CFLAGS)"'
if TRAINER
tools_info_hoop_info_CPPFLAGS += -DHOOP_BUILD_TRAINER=1
endif
tools_info_hoop_info_LDADD = $(TOOL_LIBS)

man1_MANS += tools/info/hoop-info.1
completion_DATA += tools/info/hoop-info.bash
tools/info/hoop-info.1: tools/info/hoop-info$(EXEEXT)
	$(TOOL_MAN)
tools/info/hoop-info.bash: tools/info/hoop-info$(EXEEXT)
	$(TOOL_COMPLETION)
