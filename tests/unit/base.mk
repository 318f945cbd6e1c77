# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += tests/unit/base_memory tests/unit/base_settings
TESTS += tests/unit/base_memory tests/unit/base_settings
endif
tests_unit_base_memory_SOURCES = tests/unit/base_memory.c
tests_unit_base_memory_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_base_memory_LDADD = $(TEST_LIBS)
tests_unit_base_settings_SOURCES = tests/unit/base_settings.c
tests_unit_base_settings_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_base_settings_LDADD = $(TEST_LIBS)
