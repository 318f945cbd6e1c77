# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/comm/again.c lib/comm/again.h lib/comm/publish.c lib/comm/publish.h
libhoop_core_la_SOURCES += lib/comm/flight.c lib/comm/flight.h lib/comm/shrink.c
libhoop_core_la_SOURCES += lib/comm/call.c lib/comm/collectives.c lib/comm/comm.c lib/comm/comm.h lib/comm/device.c lib/comm/device.h lib/comm/error.c \
	lib/comm/group.c lib/comm/gpu_model.c lib/comm/handle.c lib/comm/groups.c lib/comm/hosts.c lib/comm/hosts.h lib/comm/init.c lib/comm/memory.c lib/comm/operators.c lib/comm/planned.c lib/comm/point.c lib/comm/select.c lib/comm/tune.c lib/comm/tune.h lib/comm/split.c lib/comm/uneven.c lib/comm/uneven.h
libhoop_core_la_SOURCES += lib/comm/device_meet.c lib/comm/device_meet.h lib/comm/device_call.h lib/comm/device_grave.h lib/comm/device_links.h lib/comm/device_pattern.h lib/comm/device_team.c lib/comm/device_team.h
if CUDA
libhoop_core_la_SOURCES += lib/comm/device_call.c lib/comm/device_copy.c lib/comm/device_copy.h lib/comm/device_grave.c lib/comm/device_links.c lib/comm/device_order.c lib/comm/device_order.h lib/comm/device_pattern.c lib/comm/device_relay.c lib/comm/device_relay.h lib/comm/kernel.c lib/comm/kernel.h lib/comm/kernel_call.c lib/comm/lend.c lib/comm/lend.h lib/comm/messages.c lib/comm/messages.h lib/comm/stage.c lib/comm/stage.h lib/comm/stage_layout.c lib/comm/stage_layout.h
endif
