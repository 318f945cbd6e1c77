# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += transports/transports.c transports/transports.h transports/transports.def \
	transports/self/self.c transports/shm/link.c transports/shm/link.h transports/shm/shm.c \
	transports/sim/network.c transports/sim/network.h transports/sim/sim.c transports/sim/sim.h \
	transports/tcp/address.c transports/tcp/greet.c transports/tcp/inside.h transports/tcp/link.c transports/tcp/stream.c \
	transports/tcp/tcp.c transports/tcp/tcp.h \
	transports/landing.c transports/landing.h transports/cuda_ipc/cuda_ipc.c transports/pci_p2p/pci_p2p.c \
	transports/cuda_host/cuda_host.c
EXTRA_DIST += transports/README.md
