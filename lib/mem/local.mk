# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/mem/bell.c lib/mem/bell.h lib/mem/board.c lib/mem/board.h lib/mem/heap.c lib/mem/heap.h \
	lib/mem/last_cache.c lib/mem/last_cache.h lib/mem/letterbox.c lib/mem/letterbox.h lib/mem/registry.c lib/mem/registry.h \
	lib/mem/room.c lib/mem/room.h
libhoop_core_la_SOURCES += lib/mem/atomic.h lib/mem/ring.c lib/mem/ring.h
if CUDA
libhoop_core_la_SOURCES += lib/mem/cuda.c lib/mem/cuda.h lib/mem/cuda_driver.c lib/mem/cuda_driver.def lib/mem/cuda_driver.h \
	lib/mem/cuda_host.c lib/mem/cuda_import.c lib/mem/cuda_list.c lib/mem/cuda_memory.c lib/mem/cuda_stream.c lib/mem/cuda_types.h
else
libhoop_core_la_SOURCES += lib/mem/cuda_absent.c
endif
