# SPDX-License-Identifier: BSD-3-Clause
# The check of a GPU: tests/gpu/run with all that it needs in one folder, gpu-kit, built here and carried to where the GPU is.
EXTRA_DIST += tests/gpu/run tests/gpu/pack
GPU_KIT =
if CUDA
if HAVE_CHECK
if SHARED
check_PROGRAMS += tests/gpu/bits tests/gpu/rates
TESTS += tests/gpu/bits tests/gpu/test_run.sh
tests_gpu_bits_SOURCES = tests/gpu/bits.c
tests_gpu_bits_CPPFLAGS = $(TEST_CPPFLAGS)
tests_gpu_bits_LDADD = $(TEST_LIBS)
tests_gpu_rates_SOURCES = tests/gpu/rates.c
tests_gpu_rates_CPPFLAGS = $(TEST_CPPFLAGS)
tests_gpu_rates_LDADD = $(TEST_LIBS)
GPU_KIT += tests/gpu/bits tests/gpu/rates tests/unit/mem_cuda tests/unit/mem_cuda_share tests/unit/exec_cuda tests/multi/device \
	tests/multi/device_calls tests/multi/device_kernels tests/fakecuda/libcuda.la
endif
endif
endif
EXTRA_DIST += tests/gpu/test_run.sh

.PHONY: gpu-kit
gpu-kit: all $(GPU_KIT)
	$(SHELL) $(srcdir)/tests/gpu/pack . $(srcdir) gpu-kit
