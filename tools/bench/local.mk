# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += tools/bench/hoop-bench
tools_bench_hoop_bench_SOURCES = tools/bench/main.c tools/bench/bench.h tools/bench/options.c tools/bench/collectives.c \
	tools/bench/data.c tools/bench/measure.c tools/bench/progress.c tools/bench/report.c tools/bench/report_osu.c \
	tools/bench/report_json.c tools/bench/calibrate.c tools/bench/calibrate.h tools/bench/fit.c
tools_bench_hoop_bench_CPPFLAGS = $(TOOL_CPPFLAGS)
tools_bench_hoop_bench_LDADD = $(TOOL_LIBS) -lm

man1_MANS += tools/bench/hoop-bench.1
completion_DATA += tools/bench/hoop-bench.bash
tools/bench/hoop-bench.1: tools/bench/hoop-bench$(EXEEXT)
	$(TOOL_MAN)
tools/bench/hoop-bench.bash: tools/bench/hoop-bench$(EXEEXT)
	$(TOOL_COMPLETION)
