# SPDX-License-Identifier: BSD-3-Clause
# Compiles the ring and the bell itself, against modelled memory; links nothing of the library.
if HAVE_CHECK
check_PROGRAMS += tests/model/model_test
TESTS += tests/model/model_test
tests_model_model_test_SOURCES = tests/model/model_test.c tests/model/memory.c tests/model/memory.h
tests_model_model_test_CPPFLAGS = $(TEST_CPPFLAGS)
tests_model_model_test_LDADD = $(CHECK_LIBS)
endif
