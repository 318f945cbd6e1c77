# SPDX-License-Identifier: BSD-3-Clause
if CUDA
if HAVE_CHECK
check_PROGRAMS += tests/unit/mem_cuda tests/unit/mem_cuda_share tests/unit/mem_cuda_none
TESTS += tests/unit/mem_cuda tests/unit/mem_cuda_share tests/unit/mem_cuda_none
tests_unit_mem_cuda_SOURCES = tests/unit/mem_cuda.c tests/unit/mem_cuda.h
tests_unit_mem_cuda_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_mem_cuda_LDADD = $(TEST_LIBS)
tests_unit_mem_cuda_share_SOURCES = tests/unit/mem_cuda_share.c tests/unit/mem_cuda.h
tests_unit_mem_cuda_share_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_mem_cuda_share_LDADD = $(TEST_LIBS)
tests_unit_mem_cuda_none_SOURCES = tests/unit/mem_cuda_none.c
tests_unit_mem_cuda_none_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_mem_cuda_none_LDADD = $(TEST_LIBS)
endif

# The tools that only look, on a driver that has facts and nothing else, and on an NVML.
if SHARED
check_LTLIBRARIES += tests/unit/topo_driver.la tests/unit/topo_driver_old.la tests/unit/topo_nvml.la
TESTS += tests/unit/devices_tool.sh
endif
tests_unit_topo_driver_la_SOURCES = tests/unit/topo_driver.c tests/unit/topo_driver_rest.c
tests_unit_topo_driver_la_CPPFLAGS = $(INTERNAL_CPPFLAGS)
tests_unit_topo_driver_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
# The same without an entry point that came with CUDA 11.7.
tests_unit_topo_driver_old_la_SOURCES = tests/unit/topo_driver.c tests/unit/topo_driver_rest.c
tests_unit_topo_driver_old_la_CPPFLAGS = $(INTERNAL_CPPFLAGS) -DcuStreamWaitValue32_v2=cuNotThere
tests_unit_topo_driver_old_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
tests_unit_topo_nvml_la_SOURCES = tests/unit/topo_nvml.c
tests_unit_topo_nvml_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
EXTRA_DIST += tests/unit/devices_tool.sh

# Our declarations against the toolkit's: it is enough that they compile.
if HAVE_CUDA_HEADERS
check_LTLIBRARIES += tests/unit/libcuda_header.la
tests_unit_libcuda_header_la_SOURCES = tests/unit/cuda_header_calls.c tests/unit/cuda_header_values.c
tests_unit_libcuda_header_la_CPPFLAGS = $(INTERNAL_CPPFLAGS) -isystem $(CUDA_HEADERS)
endif
EXTRA_DIST += tests/unit/cuda_header_calls.c tests/unit/cuda_header_values.c
endif
