# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += tools/run/hooprun
tools_run_hooprun_SOURCES = tools/run/main.c tools/run/run.h tools/run/options.c tools/run/guard.c tools/run/hosts.c tools/run/program.c \
	tools/run/bind.c tools/run/spawn.c tools/run/output.c tools/run/sweep.c tools/run/loop.c tools/run/verdict.c
tools_run_hooprun_CPPFLAGS = $(TOOL_CPPFLAGS)
tools_run_hooprun_LDADD = $(TOOL_LIBS) -lm

man1_MANS += tools/run/hooprun.1
completion_DATA += tools/run/hooprun.bash
tools/run/hooprun.1: tools/run/hooprun$(EXEEXT)
	$(TOOL_MAN)
tools/run/hooprun.bash: tools/run/hooprun$(EXEEXT)
	$(TOOL_COMPLETION)
