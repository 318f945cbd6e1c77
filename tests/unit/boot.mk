# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += tests/unit/boot_id tests/unit/boot_launch tests/unit/boot_meeting tests/unit/boot_place tests/unit/boot_pmi tests/unit/boot_share
TESTS += tests/unit/boot_id tests/unit/boot_launch tests/unit/boot_meeting tests/unit/boot_place tests/unit/boot_pmi tests/unit/boot_share
endif
tests_unit_boot_id_SOURCES = tests/unit/boot_id.c
tests_unit_boot_id_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_boot_id_LDADD = $(TEST_LIBS)
tests_unit_boot_launch_SOURCES = tests/unit/boot_launch.c
tests_unit_boot_launch_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_boot_launch_LDADD = $(TEST_LIBS)
tests_unit_boot_meeting_SOURCES = tests/unit/boot_meeting.c tests/unit/boot_ranks.c tests/unit/boot_ranks.h
tests_unit_boot_meeting_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_boot_meeting_LDADD = $(TEST_LIBS)
tests_unit_boot_place_SOURCES = tests/unit/boot_place.c
tests_unit_boot_place_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_boot_place_LDADD = $(TEST_LIBS)
tests_unit_boot_pmi_SOURCES = tests/unit/boot_pmi.c
tests_unit_boot_pmi_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_boot_pmi_LDADD = $(TEST_LIBS)
tests_unit_boot_share_SOURCES = tests/unit/boot_share.c
tests_unit_boot_share_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_boot_share_LDADD = $(TEST_LIBS)
