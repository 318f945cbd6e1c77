# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += tests/unit/exec_sim tests/unit/mem_board
TESTS += tests/unit/exec_sim tests/unit/mem_board
tests_unit_exec_sim_SOURCES = tests/unit/exec_sim.c tests/simulated.c tests/cases.c
tests_unit_exec_sim_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_exec_sim_LDADD = $(TEST_LIBS)
tests_unit_mem_board_SOURCES = tests/unit/mem_board.c
tests_unit_mem_board_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_mem_board_LDADD = $(TEST_LIBS)
endif
