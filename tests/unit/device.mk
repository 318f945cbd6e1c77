# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += tests/unit/device_messages tests/unit/device_plans tests/unit/device_vector tests/unit/device_words
TESTS += tests/unit/device_messages tests/unit/device_plans tests/unit/device_vector tests/unit/device_words
tests_unit_device_messages_SOURCES = tests/unit/device_messages.c tests/device.c tests/device.h
tests_unit_device_messages_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_device_messages_LDADD = libhoop_device.la $(TEST_LIBS)
tests_unit_device_words_SOURCES = tests/unit/device_words.c
tests_unit_device_words_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_device_words_LDADD = $(TEST_LIBS)
tests_unit_device_plans_SOURCES = tests/unit/device_plans.c tests/device.c tests/device.h
tests_unit_device_plans_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_device_plans_LDADD = libhoop_device.la $(TEST_LIBS)
tests_unit_device_vector_SOURCES = tests/unit/device_vector.c tests/device.c tests/device.h
tests_unit_device_vector_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_device_vector_LDADD = libhoop_device.la $(TEST_LIBS)
endif
if CUDA
check_PROGRAMS += tests/unit/device_image tests/unit/exec_cuda
TESTS += tests/unit/device_image tests/unit/exec_cuda
tests_unit_exec_cuda_SOURCES = tests/unit/exec_cuda.c
tests_unit_exec_cuda_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_exec_cuda_LDADD = $(TEST_LIBS)
tests_unit_device_image_SOURCES = tests/unit/device_image.c
tests_unit_device_image_LDADD = libhoop_core.la $(HWLOC_LIBS) $(SODIUM_LIBS) $(EXPAT_LIBS) -lm
endif
