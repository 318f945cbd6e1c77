# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += tests/unit/transport_tcp
TESTS += tests/unit/transport_tcp
endif
tests_unit_transport_tcp_SOURCES = tests/unit/transport_tcp.c
tests_unit_transport_tcp_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_transport_tcp_LDADD = $(TEST_LIBS)
