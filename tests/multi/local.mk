# SPDX-License-Identifier: BSD-3-Clause
include $(srcdir)/tests/multi/hooprun.mk

if HAVE_CHECK
check_PROGRAMS += tests/multi/collectives tests/multi/failure tests/multi/handles tests/multi/huge tests/multi/mismatch tests/multi/numerics tests/multi/point tests/multi/register tests/multi/split tests/multi/uneven
TESTS += tests/multi/collectives tests/multi/failure tests/multi/handles tests/multi/huge tests/multi/mismatch tests/multi/numerics tests/multi/point tests/multi/register tests/multi/split tests/multi/uneven
tests_multi_collectives_SOURCES = tests/multi/collectives.c
tests_multi_collectives_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_collectives_LDADD = $(TEST_LIBS)
tests_multi_failure_SOURCES = tests/multi/failure.c
tests_multi_failure_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_failure_LDADD = $(TEST_LIBS)
tests_multi_handles_SOURCES = tests/multi/handles.c
tests_multi_handles_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_handles_LDADD = $(TEST_LIBS)
tests_multi_huge_SOURCES = tests/multi/huge.c
tests_multi_huge_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_huge_LDADD = $(TEST_LIBS)
tests_multi_point_SOURCES = tests/multi/point.c
tests_multi_point_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_point_LDADD = $(TEST_LIBS)
tests_multi_register_SOURCES = tests/multi/register.c
tests_multi_register_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_register_LDADD = $(TEST_LIBS)
tests_multi_split_SOURCES = tests/multi/split.c
tests_multi_split_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_split_LDADD = $(TEST_LIBS)
tests_multi_uneven_SOURCES = tests/multi/uneven.c
tests_multi_uneven_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_uneven_LDADD = $(TEST_LIBS)
tests_multi_mismatch_SOURCES = tests/multi/mismatch.c
tests_multi_mismatch_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_mismatch_LDADD = $(TEST_LIBS)
tests_multi_numerics_SOURCES = tests/multi/numerics.c
tests_multi_numerics_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_numerics_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/again
TESTS += tests/multi/again
tests_multi_again_SOURCES = tests/multi/again.c
tests_multi_again_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_again_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/kills
TESTS += tests/multi/kills
tests_multi_kills_SOURCES = tests/multi/kills.c
tests_multi_kills_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_kills_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/faults
TESTS += tests/multi/faults
tests_multi_faults_SOURCES = tests/multi/faults.c
tests_multi_faults_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_faults_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/scarce
TESTS += tests/multi/scarce
tests_multi_scarce_SOURCES = tests/multi/scarce.c
tests_multi_scarce_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_scarce_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/shrink
TESTS += tests/multi/shrink
tests_multi_shrink_SOURCES = tests/multi/shrink.c
tests_multi_shrink_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_shrink_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/determinism
TESTS += tests/multi/determinism
tests_multi_determinism_SOURCES = tests/multi/determinism.c
tests_multi_determinism_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_determinism_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/direct
TESTS += tests/multi/direct
tests_multi_direct_SOURCES = tests/multi/direct.c
tests_multi_direct_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_direct_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/interrupted
TESTS += tests/multi/interrupted
tests_multi_interrupted_SOURCES = tests/multi/interrupted.c
tests_multi_interrupted_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_interrupted_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/effort
TESTS += tests/multi/effort
tests_multi_effort_SOURCES = tests/multi/effort.c
tests_multi_effort_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_effort_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/explain
TESTS += tests/multi/explain
tests_multi_explain_SOURCES = tests/multi/explain.c
tests_multi_explain_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_explain_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/operators tests/multi/operator_rules
TESTS += tests/multi/operators tests/multi/operator_rules
tests_multi_operators_SOURCES = tests/multi/operators.c
tests_multi_operators_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_operators_LDADD = $(TEST_LIBS)
tests_multi_operator_rules_SOURCES = tests/multi/operator_rules.c
tests_multi_operator_rules_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_operator_rules_LDADD = $(TEST_LIBS)

if CUDA
check_PROGRAMS += tests/multi/device tests/multi/device_calls tests/multi/device_direct tests/multi/device_kernels
TESTS += tests/multi/device tests/multi/device_calls tests/multi/device_direct tests/multi/device_kernels
tests_multi_device_direct_SOURCES = tests/multi/device_direct.c
tests_multi_device_direct_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_device_direct_LDADD = $(TEST_LIBS)
tests_multi_device_kernels_SOURCES = tests/multi/device_kernels.c
tests_multi_device_kernels_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_device_kernels_LDADD = $(TEST_LIBS)
check_PROGRAMS += tests/multi/device_copies
TESTS += tests/multi/device_copies
tests_multi_device_copies_SOURCES = tests/multi/device_copies.c
tests_multi_device_copies_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_device_copies_LDADD = $(TEST_LIBS)
tests_multi_device_SOURCES = tests/multi/device.c
tests_multi_device_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_device_LDADD = $(TEST_LIBS)
tests_multi_device_calls_SOURCES = tests/multi/device_calls.c
tests_multi_device_calls_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_device_calls_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/device_grid
TESTS += tests/multi/device_grid
GRID_TESTS = tests/multi/device_grid
tests_multi_device_grid_SOURCES = tests/multi/device_grid.c
tests_multi_device_grid_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_device_grid_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/device_hosts
TESTS += tests/multi/device_hosts
tests_multi_device_hosts_SOURCES = tests/multi/device_hosts.c
tests_multi_device_hosts_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_device_hosts_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/device_order
TESTS += tests/multi/device_order
tests_multi_device_order_SOURCES = tests/multi/device_order.c
tests_multi_device_order_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_device_order_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/device_messages
TESTS += tests/multi/device_messages
tests_multi_device_messages_SOURCES = tests/multi/device_messages.c
tests_multi_device_messages_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_device_messages_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/device_faults
TESTS += tests/multi/device_faults
tests_multi_device_faults_SOURCES = tests/multi/device_faults.c
tests_multi_device_faults_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_device_faults_LDADD = $(TEST_LIBS)

check_PROGRAMS += tests/multi/device_graphs
TESTS += tests/multi/device_graphs
tests_multi_device_graphs_SOURCES = tests/multi/device_graphs.c
tests_multi_device_graphs_CPPFLAGS = $(TEST_CPPFLAGS)
tests_multi_device_graphs_LDADD = $(TEST_LIBS)
endif
endif
