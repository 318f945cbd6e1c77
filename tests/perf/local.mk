# SPDX-License-Identifier: BSD-3-Clause
# `make bench-peers`: hoop against other libraries on this host. Not a test, and nothing of it is built or looked for
# before it is asked for. BENCH_PEERS: options for tests/perf/peers, such as "--quick". `make bench-network`: the same by TCP between
# network namespaces, with BENCH_NETWORK.
perf_programs = tests/perf/peer_hoop tests/perf/limit
EXTRA_PROGRAMS += $(perf_programs) tests/perf/junk
CLEANFILES += $(perf_programs) tests/perf/junk peers.json network.json
tests_perf_peer_hoop_SOURCES = tests/perf/peer_hoop.c tests/perf/measure.c tests/perf/measure.h
tests_perf_peer_hoop_LDADD = libhoop.la
tests_perf_peer_hoop_LDFLAGS = $(AM_LDFLAGS) -no-install
tests_perf_junk_SOURCES = tests/perf/junk.c
tests_perf_junk_CPPFLAGS = $(INTERNAL_CPPFLAGS)
tests_perf_junk_LDADD = libhoop_core.la
tests_perf_limit_SOURCES = tests/perf/limit.c tests/perf/measure.c tests/perf/measure.h
tests_perf_limit_CFLAGS = $(AM_CFLAGS) -march=native

EXTRA_DIST += tests/perf/peers tests/perf/targets tests/perf/network tests/perf/network_targets tests/perf/table.awk \
	tests/perf/peer_mpi.c tests/perf/peer_gloo.cc tests/perf/peer_oneccl.cc
.PHONY: bench-peers bench-network bench-junk
bench-peers: $(perf_programs) tools/run/hooprun$(EXEEXT)
	$(AM_V_at)TEST_BUILD='$(abs_top_builddir)' CC='$(CC)' bash $(top_srcdir)/tests/perf/peers $(BENCH_PEERS)
bench-network: tests/perf/peer_hoop$(EXEEXT) tools/run/hooprun$(EXEEXT)
	$(AM_V_at)TEST_BUILD='$(abs_top_builddir)' CC='$(CC)' bash $(top_srcdir)/tests/perf/network $(BENCH_NETWORK)

TESTS += tests/perf/test_table.sh
EXTRA_DIST += tests/perf/test_table.sh

# How much strangers at the rendezvous port delay a join; BENCH_JUNK: ranks, connections a second, blocks.
bench-junk: tests/perf/junk$(EXEEXT)
	$(AM_V_at)tests/perf/junk $(BENCH_JUNK)
