# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += tests/unit/dtype_reduce tests/unit/dtype_convert
TESTS += tests/unit/dtype_reduce tests/unit/dtype_convert
endif
TESTS += tests/unit/kernels_aarch64.sh
EXTRA_DIST += tests/unit/kernels_aarch64.sh
tests_unit_dtype_reduce_SOURCES = tests/unit/dtype_reduce.c
tests_unit_dtype_reduce_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_dtype_reduce_LDADD = $(TEST_LIBS)
tests_unit_dtype_convert_SOURCES = tests/unit/dtype_convert.c
tests_unit_dtype_convert_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_dtype_convert_LDADD = $(TEST_LIBS)
