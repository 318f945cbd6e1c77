# SPDX-License-Identifier: BSD-3-Clause
libhoop_core_la_SOURCES += lib/topo/model.h lib/topo/graph.c lib/topo/classify.c lib/topo/paths.c lib/topo/cpus.c \
	lib/topo/source_hwloc.c lib/topo/source_nvlink.c lib/topo/source_file.c lib/topo/xml.c lib/topo/xml.h lib/topo/text.c \
	lib/topo/nccl.h lib/topo/source_nccl.c lib/topo/source_nccl_links.c lib/topo/paths_nccl.c \
	lib/topo/sysfs.h lib/topo/sysfs.c lib/topo/source_sysfs.c lib/topo/source_sysfs_pci.c lib/topo/source_kfd.c lib/topo/verbs.c lib/topo/network.h lib/topo/network.c lib/topo/prices.c lib/topo/search.c lib/topo/search.h lib/topo/search_report.c lib/topo/own.c lib/topo/facts.h lib/topo/facts.c lib/topo/source_facts.c lib/topo/source_hwloc.h lib/topo/source_hwloc_notes.c lib/topo/write_hwloc.h lib/topo/write_hwloc.c lib/topo/write_hwloc_boxes.c
if CUDA
libhoop_core_la_SOURCES += lib/topo/source_devices.c lib/topo/source_nvml.c
endif
