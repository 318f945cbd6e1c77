# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += tests/unit/exec_sim
TESTS += tests/unit/exec_sim
tests_unit_exec_sim_SOURCES = tests/unit/exec_sim.c tests/cases.c tests/cases.h
tests_unit_exec_sim_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_exec_sim_LDADD = $(TEST_LIBS)
endif
