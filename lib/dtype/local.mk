# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/dtype/dtype.c lib/dtype/dtype.h lib/dtype/types.def lib/dtype/ops.def \
	lib/dtype/kernels.h lib/dtype/past.c lib/dtype/kernels.inc lib/dtype/codecs.inc lib/dtype/kernels_plain.c \
	lib/dtype/kernels_avx2.c lib/dtype/kernels_avx512.c lib/dtype/kernels_neon.c
