# SPDX-License-Identifier: BSD-3-Clause
# libFuzzer harnesses: one program a file fuzz_NAME.c, seeds in corpus/NAME. To add one: a name in fuzz_harnesses, its
# sources, its seeds. Build with configure --enable-fuzz CC=clang; run with tests/fuzz/run, or all at once: make check-fuzz.
fuzz_harnesses =
fuzz_link = $(AM_LDFLAGS) -fsanitize=fuzzer

EXTRA_DIST += tests/fuzz/run
EXTRA_PROGRAMS = $(fuzz_harnesses)

.PHONY: fuzz-programs
fuzz-programs: $(fuzz_harnesses)
