# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += tools/plan/hoop-plan
tools_plan_hoop_plan_SOURCES = tools/plan/main.c tools/plan/plan_tool.h tools/plan/show.c tools/plan/check.c \
	tools/plan/draw.c tools/plan/explain.c tools/plan/gpus.c tools/plan/simulate.c tools/plan/plot.c tools/plan/topo.c
tools_plan_hoop_plan_CPPFLAGS = $(TOOL_CPPFLAGS)
tools_plan_hoop_plan_LDADD = $(TOOL_LIBS) -lm -lpthread

man1_MANS += tools/plan/hoop-plan.1
completion_DATA += tools/plan/hoop-plan.bash
tools/plan/hoop-plan.1: tools/plan/hoop-plan$(EXEEXT)
	$(TOOL_MAN)
tools/plan/hoop-plan.bash: tools/plan/hoop-plan$(EXEEXT)
	$(TOOL_COMPLETION)
