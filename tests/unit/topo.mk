# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += tests/unit/topo_graph tests/unit/topo_file tests/unit/topo_recorded tests/unit/topo_rings
TESTS += tests/unit/topo_graph tests/unit/topo_file tests/unit/topo_recorded tests/unit/topo_rings
endif
tests_unit_topo_graph_SOURCES = tests/unit/topo_graph.c
tests_unit_topo_graph_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_topo_graph_LDADD = $(TEST_LIBS)
tests_unit_topo_file_SOURCES = tests/unit/topo_file.c
tests_unit_topo_file_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_topo_file_LDADD = $(TEST_LIBS)
tests_unit_topo_recorded_SOURCES = tests/unit/topo_recorded.c
tests_unit_topo_recorded_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_topo_recorded_LDADD = $(TEST_LIBS)
tests_unit_topo_rings_SOURCES = tests/unit/topo_rings.c
tests_unit_topo_rings_CPPFLAGS = $(TEST_CPPFLAGS)
tests_unit_topo_rings_LDADD = $(TEST_LIBS)

TESTS += tests/unit/topo_predict.sh
EXTRA_DIST += tests/unit/topo_predict.sh tests/unit/topo/a100x8.xml tests/unit/topo/circle.xml tests/unit/topo/h100x8.xml tests/unit/topo/rtx5090x8.xml tests/unit/topo/a100x8.rings tests/unit/topo/a100x8.chains
TESTS += tests/unit/topo_tool.sh tests/unit/topo_sysfs.sh tests/unit/topo_tables.sh tests/unit/info_tool.sh
EXTRA_DIST += tests/unit/topo_tool.sh tests/unit/topo_sysfs.sh tests/unit/topo_tables.sh tests/unit/info_tool.sh tests/unit/topo/box.xml tests/unit/topo/box.matrix \
	tests/unit/topo/box.matrix_pci tests/unit/topo/box.tree tests/unit/topo/box.json tests/unit/topo/two-nodes.matrix \
	tests/unit/topo/nccl.xml tests/unit/topo/nccl.matrix tests/unit/topo/nccl.paths tests/unit/topo/nccl.tree tests/unit/topo/box.paths tests/unit/topo/box.rings tests/unit/topo/box.chains tests/unit/topo/box.channels tests/unit/topo/nccl.rings tests/unit/topo/nccl.svg tests/unit/topo/nccl.dot tests/unit/topo/nccl.doctor \
	tests/unit/topo/sysfs.tree tests/unit/topo/sysfs.matrix tests/unit/topo/sysfs.paths
