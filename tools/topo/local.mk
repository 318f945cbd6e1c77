# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += tools/topo/hoop-topo
tools_topo_hoop_topo_SOURCES = tools/topo/main.c tools/topo/show.h tools/topo/matrix.c tools/topo/nccl.c tools/topo/ask.c tools/topo/svg.c tools/topo/dot.c tools/topo/export_nccl.c tools/topo/doctor.c tools/topo/measure.c tools/topo/channels.c tools/topo/unpack.c tools/topo/tree.c tools/topo/json.c
tools_topo_hoop_topo_CPPFLAGS = $(TOOL_CPPFLAGS)
tools_topo_hoop_topo_LDADD = $(TOOL_LIBS)

man1_MANS += tools/topo/hoop-topo.1
completion_DATA += tools/topo/hoop-topo.bash
tools/topo/hoop-topo.1: tools/topo/hoop-topo$(EXEEXT)
	$(TOOL_MAN)
tools/topo/hoop-topo.bash: tools/topo/hoop-topo$(EXEEXT)
	$(TOOL_COMPLETION)
