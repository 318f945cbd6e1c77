# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += tests/conform/conform
TESTS += tests/conform/conform
tests_conform_conform_SOURCES = tests/conform/main.c tests/conform/conform.h tests/conform/fixtures.c \
	tests/conform/moving.c tests/conform/ending.c tests/conform/random.c tests/conform/apart.c
tests_conform_conform_CPPFLAGS = $(TEST_CPPFLAGS)
tests_conform_conform_LDADD = $(TEST_LIBS)
endif
