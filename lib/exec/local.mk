# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/exec/direct.c lib/exec/direct.h lib/exec/flat.c lib/exec/flat.h lib/exec/host.c lib/exec/host.h lib/exec/spread.c lib/exec/spread.h lib/exec/staged.c lib/exec/staged.h lib/exec/stream.c lib/exec/stream.h \
	lib/exec/wait.c lib/exec/wait.h
libhoop_core_la_SOURCES += lib/exec/program.c lib/exec/program.h lib/exec/device/device.h lib/exec/device/program.h
EXTRA_DIST += lib/exec/device/interp.cu lib/exec/device/lane.inc lib/exec/device/message.inc lib/exec/device/reduce.inc lib/exec/device/vector.inc \
	lib/exec/device/work.inc
if CUDA
libhoop_core_la_SOURCES += lib/exec/cuda.c lib/exec/cuda.h lib/exec/cuda_bring.c lib/exec/cuda_bring.h lib/exec/cuda_code.c lib/exec/cuda_team.c lib/exec/cuda_team.h lib/exec/cuda_code.h lib/exec/cuda_relay.c lib/exec/cuda_relay.h lib/exec/device/image.c
endif

# Device code. One architecture of each major version as machine code, and the oldest as PTX for all others (configure has the list).
# No fused multiply-add: the bits are those of the host.
DEVICE_TEXT = $(srcdir)/lib/exec/device/interp.cu $(srcdir)/lib/exec/device/device.h $(srcdir)/lib/exec/device/program.h \
	$(srcdir)/lib/exec/device/lane.inc $(srcdir)/lib/exec/device/message.inc $(srcdir)/lib/exec/device/work.inc \
	$(srcdir)/lib/exec/device/reduce.inc $(srcdir)/lib/exec/device/vector.inc \
	$(srcdir)/lib/dtype/types.def $(srcdir)/lib/dtype/ops.def $(srcdir)/include/hoop.h $(srcdir)/include/hoop/plan.h \
	$(srcdir)/include/hoop/transport.h
DEVICE_FLAGS = -x cu -fatbin -fmad=false -I$(top_srcdir)/include -I$(top_srcdir)/lib -I$(top_srcdir)
DEVICE_ALL =
if DEVICE_CODE
DEVICE_ALL += lib/exec/device/all.fatbin
CLEANFILES += lib/exec/device/kernels.fatbin lib/exec/device/all.fatbin
lib/exec/device/kernels.fatbin: $(DEVICE_TEXT)
	$(AM_V_GEN)$(MKDIR_P) lib/exec/device && $(NVCC) $(NVCC_FLAGS) $(DEVICE_FLAGS) -o $@ $(srcdir)/lib/exec/device/interp.cu
# By way of a variable: a rule for the object itself would take the place of automake's.
DEVICE_OBJECT = lib/exec/device/libhoop_core_la-image.lo
$(DEVICE_OBJECT): lib/exec/device/kernels.fatbin

# Every architecture that this nvcc knows, to see that all accept the code.
lib/exec/device/all.fatbin: $(DEVICE_TEXT)
	$(AM_V_GEN)$(NVCC) -t 2 $(DEVICE_FLAGS) -Werror all-warnings --gpu-architecture=all -o $@ $(srcdir)/lib/exec/device/interp.cu
endif
.PHONY: check-device
check-device: $(DEVICE_ALL)
	@ls -l $(DEVICE_ALL)

# The same kernels as C functions, for the fake driver: linked by it, not part of the library.
check_LTLIBRARIES += libhoop_device.la
libhoop_device_la_SOURCES = lib/exec/kernels_c.c
libhoop_device_la_CPPFLAGS = $(INTERNAL_CPPFLAGS)
libhoop_device_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
