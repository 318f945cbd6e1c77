# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/plan/build.c lib/plan/build.h lib/plan/compose.c lib/plan/groups.c lib/plan/fuse.c lib/plan/names.c lib/plan/bind.c \
	lib/plan/bind.h lib/plan/cache.c lib/plan/cache.h lib/plan/text.c lib/plan/text.h lib/plan/check.c lib/plan/check.h \
	lib/plan/check_expr.c lib/plan/check_shape.c lib/plan/check_race.c lib/plan/check_run.c lib/plan/check_result.c \
	lib/plan/model.c lib/plan/model.h lib/plan/model_file.c lib/plan/machine.c lib/plan/machine.h lib/plan/model.def \
	lib/plan/lines.c lib/plan/lines.h lib/plan/wisdom.c lib/plan/wisdom.h lib/plan/choose.c lib/plan/choose.h \
	lib/plan/explain.c lib/plan/explain.h lib/plan/simulate.c lib/plan/simulate_build.c lib/plan/simulate_queue.c lib/plan/simulate_queue.h lib/plan/network.c lib/plan/crossing.c \
	lib/plan/simulate.h lib/plan/crossing.h
