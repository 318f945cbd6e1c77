# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += tests/plan/algorithms tests/plan/orders tests/plan/mutation tests/plan/bind tests/plan/text tests/plan/faults tests/plan/model tests/plan/simulate tests/plan/hier
TESTS += tests/plan/algorithms tests/plan/orders tests/plan/mutation tests/plan/bind tests/plan/text tests/plan/faults tests/plan/model tests/plan/simulate tests/plan/hier
endif
tests_plan_algorithms_SOURCES = tests/plan/algorithms.c tests/plan/brute.c tests/plan/brute.h tests/plan/plans.h
tests_plan_algorithms_CPPFLAGS = $(TEST_CPPFLAGS)
tests_plan_algorithms_LDADD = $(TEST_LIBS)
tests_plan_orders_SOURCES = tests/plan/orders.c tests/plan/brute.c tests/plan/brute.h tests/plan/plans.h
tests_plan_orders_CPPFLAGS = $(TEST_CPPFLAGS)
tests_plan_orders_LDADD = $(TEST_LIBS)
tests_plan_mutation_SOURCES = tests/plan/mutation.c tests/plan/brute.c tests/plan/brute.h tests/plan/plans.h
tests_plan_mutation_CPPFLAGS = $(TEST_CPPFLAGS)
tests_plan_mutation_LDADD = $(TEST_LIBS)
tests_plan_bind_SOURCES = tests/plan/bind.c tests/plan/plans.h
tests_plan_bind_CPPFLAGS = $(TEST_CPPFLAGS)
tests_plan_bind_LDADD = $(TEST_LIBS)
tests_plan_text_SOURCES = tests/plan/text.c tests/plan/plans.h
tests_plan_text_CPPFLAGS = $(TEST_CPPFLAGS)
tests_plan_text_LDADD = $(TEST_LIBS)
tests_plan_faults_SOURCES = tests/plan/faults.c tests/plan/plans.h
tests_plan_faults_CPPFLAGS = $(TEST_CPPFLAGS)
tests_plan_faults_LDADD = $(TEST_LIBS)
tests_plan_hier_SOURCES = tests/plan/hier.c tests/plan/brute.c tests/plan/brute.h tests/plan/plans.h
tests_plan_hier_CPPFLAGS = $(TEST_CPPFLAGS)
tests_plan_hier_LDADD = $(TEST_LIBS)
tests_plan_simulate_SOURCES = tests/plan/simulate.c
tests_plan_simulate_CPPFLAGS = $(TEST_CPPFLAGS)
tests_plan_simulate_LDADD = $(TEST_LIBS)
tests_plan_model_SOURCES = tests/plan/model.c
tests_plan_model_CPPFLAGS = $(TEST_CPPFLAGS)
tests_plan_model_LDADD = $(TEST_LIBS)

if HAVE_CHECK
check_PROGRAMS += tests/plan/fit tests/plan/wisdom tests/plan/crossing
TESTS += tests/plan/fit tests/plan/wisdom tests/plan/crossing
endif
tests_plan_fit_SOURCES = tests/plan/fit.c tools/bench/fit.c
tests_plan_fit_CPPFLAGS = $(TEST_CPPFLAGS) -I$(top_srcdir)/tools/bench
tests_plan_fit_LDADD = $(TEST_LIBS)

tests_plan_crossing_SOURCES = tests/plan/crossing.c
tests_plan_crossing_CPPFLAGS = $(TEST_CPPFLAGS)
tests_plan_crossing_LDADD = $(TEST_LIBS)

tests_plan_wisdom_SOURCES = tests/plan/wisdom.c
tests_plan_wisdom_CPPFLAGS = $(TEST_CPPFLAGS)
tests_plan_wisdom_LDADD = $(TEST_LIBS)

TESTS += tests/plan/plan_tool.sh
EXTRA_DIST += tests/plan/plan_tool.sh
