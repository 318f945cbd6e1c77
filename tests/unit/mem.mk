# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += tests/unit/mem_ring tests/unit/mem_bell
TESTS += tests/unit/mem_ring tests/unit/mem_bell
tests_unit_mem_ring_SOURCES = tests/unit/mem_ring.c
tests_unit_mem_ring_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_mem_ring_LDADD = $(TEST_LIBS)
tests_unit_mem_bell_SOURCES = tests/unit/mem_bell.c
tests_unit_mem_bell_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_mem_bell_LDADD = $(TEST_LIBS)
endif
