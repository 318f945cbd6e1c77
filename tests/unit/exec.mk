# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += tests/unit/exec_sim tests/unit/exec_spread tests/unit/mem_board tests/unit/mem_registry
TESTS += tests/unit/exec_sim tests/unit/exec_spread tests/unit/mem_board tests/unit/mem_registry
tests_unit_exec_sim_SOURCES = tests/unit/exec_sim.c
tests_unit_exec_sim_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_exec_sim_LDADD = $(TEST_LIBS)
tests_unit_exec_spread_SOURCES = tests/unit/exec_spread.c
tests_unit_exec_spread_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_exec_spread_LDADD = $(TEST_LIBS)
tests_unit_mem_registry_SOURCES = tests/unit/mem_registry.c
tests_unit_mem_registry_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_mem_registry_LDADD = $(TEST_LIBS)
tests_unit_mem_board_SOURCES = tests/unit/mem_board.c
tests_unit_mem_board_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_mem_board_LDADD = $(TEST_LIBS)
endif
