# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += tests/unit/wire_cursor tests/unit/wire_socket
TESTS += tests/unit/wire_cursor tests/unit/wire_socket
endif
tests_unit_wire_cursor_SOURCES = tests/unit/wire_cursor.c
tests_unit_wire_cursor_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_wire_cursor_LDADD = $(TEST_LIBS)
tests_unit_wire_socket_SOURCES = tests/unit/wire_socket.c
tests_unit_wire_socket_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_wire_socket_LDADD = $(TEST_LIBS)
