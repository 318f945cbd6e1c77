# SPDX-License-Identifier: BSD-3-Clause
# libFuzzer harnesses: one program a file fuzz_NAME.c, seeds in corpus/NAME. To add one: its program in fuzz_harnesses, four
# lines, its seeds. Build with configure --enable-fuzz CC=clang; run with tests/fuzz/run, or all at once: make check-fuzz.
fuzz_harnesses = tests/fuzz/fuzz_cursor tests/fuzz/fuzz_unique_id tests/fuzz/fuzz_hello tests/fuzz/fuzz_settings \
	tests/fuzz/fuzz_plan tests/fuzz/fuzz_model tests/fuzz/fuzz_wisdom tests/fuzz/fuzz_tcp tests/fuzz/fuzz_topo tests/fuzz/fuzz_sysfs tests/fuzz/fuzz_launch \
	tests/fuzz/fuzz_flight tests/fuzz/fuzz_peer tests/fuzz/fuzz_lists tests/fuzz/fuzz_facts
if TRAINER
fuzz_harnesses += tests/fuzz/fuzz_idx
endif
fuzz_link = $(AM_LDFLAGS) -fsanitize=fuzzer

EXTRA_PROGRAMS = $(fuzz_harnesses)
tests_fuzz_fuzz_cursor_SOURCES = tests/fuzz/fuzz_cursor.c
tests_fuzz_fuzz_cursor_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_cursor_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_cursor_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_unique_id_SOURCES = tests/fuzz/fuzz_unique_id.c
tests_fuzz_fuzz_unique_id_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_unique_id_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_unique_id_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_hello_SOURCES = tests/fuzz/fuzz_hello.c
tests_fuzz_fuzz_hello_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_hello_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_hello_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_settings_SOURCES = tests/fuzz/fuzz_settings.c
tests_fuzz_fuzz_settings_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_settings_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_settings_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_plan_SOURCES = tests/fuzz/fuzz_plan.c
tests_fuzz_fuzz_plan_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_plan_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_plan_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_model_SOURCES = tests/fuzz/fuzz_model.c
tests_fuzz_fuzz_model_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_model_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_model_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_wisdom_SOURCES = tests/fuzz/fuzz_wisdom.c
tests_fuzz_fuzz_wisdom_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_wisdom_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_wisdom_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_tcp_SOURCES = tests/fuzz/fuzz_tcp.c
tests_fuzz_fuzz_tcp_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_tcp_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_tcp_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_topo_SOURCES = tests/fuzz/fuzz_topo.c
tests_fuzz_fuzz_topo_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_topo_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_topo_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_sysfs_SOURCES = tests/fuzz/fuzz_sysfs.c
tests_fuzz_fuzz_sysfs_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_sysfs_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_sysfs_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_launch_SOURCES = tests/fuzz/fuzz_launch.c
tests_fuzz_fuzz_launch_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_launch_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_launch_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_flight_SOURCES = tests/fuzz/fuzz_flight.c
tests_fuzz_fuzz_flight_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_flight_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_flight_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_peer_SOURCES = tests/fuzz/fuzz_peer.c
tests_fuzz_fuzz_peer_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_peer_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_peer_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_lists_SOURCES = tests/fuzz/fuzz_lists.c tools/run/hosts.c
tests_fuzz_fuzz_lists_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_lists_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_lists_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_facts_SOURCES = tests/fuzz/fuzz_facts.c
tests_fuzz_fuzz_facts_CPPFLAGS = $(TEST_CPPFLAGS)
tests_fuzz_fuzz_facts_LDADD = $(TEST_LIBS)
tests_fuzz_fuzz_facts_LDFLAGS = $(fuzz_link)
tests_fuzz_fuzz_idx_SOURCES = tests/fuzz/fuzz_idx.c trainer/idx.c trainer/fail.c
tests_fuzz_fuzz_idx_CPPFLAGS = $(TEST_CPPFLAGS) $(ZLIB_CFLAGS)
tests_fuzz_fuzz_idx_LDADD = $(TEST_LIBS) $(ZLIB_LIBS)
tests_fuzz_fuzz_idx_LDFLAGS = $(fuzz_link)

.PHONY: fuzz-programs
fuzz-programs: $(fuzz_harnesses)

EXTRA_DIST += tests/fuzz/run tests/fuzz/corpus/settings/size tests/fuzz/corpus/settings/time tests/fuzz/corpus/settings/word \
	tests/fuzz/corpus/unique_id/ipv4 \
	tests/fuzz/corpus/unique_id/ipv6 tests/fuzz/corpus/plan/ring tests/fuzz/corpus/plan/dbtree tests/fuzz/corpus/plan/recdbl tests/fuzz/corpus/model/whole tests/fuzz/corpus/wisdom/two \
	tests/fuzz/corpus/topo/nccl tests/fuzz/corpus/topo/template tests/fuzz/corpus/topo/own tests/fuzz/corpus/sysfs/box \
	tests/fuzz/corpus/launch/hydra tests/fuzz/corpus/launch/slurm tests/fuzz/corpus/launch/hosts tests/fuzz/corpus/launch/place tests/fuzz/corpus/launch/torchrun \
	tests/fuzz/corpus/launch/srun tests/fuzz/corpus/facts/all tests/fuzz/corpus/lists/ports tests/fuzz/corpus/lists/network tests/fuzz/corpus/lists/groups tests/fuzz/corpus/lists/interfaces tests/fuzz/corpus/lists/hosts
