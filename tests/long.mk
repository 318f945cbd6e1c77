# SPDX-License-Identifier: BSD-3-Clause
# The long checks: the tests once more with every sanitizer, each in a build of its own under this build folder, and the
# fuzz harnesses for FUZZ_SECONDS each. `make check-asan`, `make check-tsan`, `make check-fuzz`, `make check-grid` run one part.
FUZZ_SECONDS = 60
.PHONY: check-long check-asan check-tsan check-tsan-cuda check-fuzz

check-long:
	$(MAKE) $(AM_MAKEFLAGS) check-asan
	$(MAKE) $(AM_MAKEFLAGS) check-tsan
	$(MAKE) $(AM_MAKEFLAGS) check-fuzz
	$(MAKE) $(AM_MAKEFLAGS) check-grid

check-asan:
	$(SHELL) $(top_srcdir)/tests/long check-asan '$(MAKE)' '$(CC)' --enable-sanitize=address,undefined --enable-faults

# Every collective x type x operator on every number of fake GPUs, as processes and as threads; make check takes a sample.
.PHONY: check-grid
check-grid: check-programs
	for test in $(GRID_TESTS); do \
		TEST_BUILD='$(abs_top_builddir)' TEST_GRID=full TEST_LIMIT=900 $(SHELL) $(top_srcdir)/tests/capped $$test || exit 1; \
	done

# A test that forks while threads run, or that needs more address space than TSan leaves, is in TESTS_NOT_TSAN.
check-tsan:
	$(SHELL) $(top_srcdir)/tests/long check-tsan '$(MAKE)' '$(CC)' --enable-sanitize=thread

# Those of them that use the fake CUDA driver.
check-tsan-cuda:
	$(MAKE) $(AM_MAKEFLAGS) check-tsan TESTS='$(filter tests/fakecuda/% tests/multi/device% tests/unit/device% tests/unit/exec_cuda% \
		tests/unit/mem_cuda%,$(TESTS))'

check-fuzz:
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(SHELL) $(top_srcdir)/tests/long check-fuzz '$(MAKE)' clang \
		--enable-fuzz --enable-sanitize=address,undefined

EXTRA_DIST += tests/long
EXTRA_DIST += tests/sanitize/lsan.txt tests/sanitize/tsan.txt
