# SPDX-License-Identifier: BSD-3-Clause
# What needs a kernel of our own: run in a virtual machine, not by make check. Skipped, with the reason, where QEMU or its kernel is missing.
EXTRA_DIST += tests/vm/guest tests/vm/init tests/vm/test_loss.sh
VM_SECONDS = 600
.PHONY: check-vm
check-vm: check-programs
	TEST_BUILD='$(abs_top_builddir)' $(srcdir)/tests/vm/guest --timeout $(VM_SECONDS) bash '$(abs_top_srcdir)/tests/vm/test_loss.sh'; \
		code=$$?; test $$code = 0 || test $$code = 77
