# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tools/lint/run tools/lint/files tools/lint/edges tools/lint/words tools/lint/includes tools/lint/sizes \
	tools/lint/banned tools/lint/heads tools/lint/docs tools/lint/space tools/lint/format tools/lint/scripts \
	tools/lint/cppcheck tools/lint/cppcheck.txt

.PHONY: lint format compile_commands.json

lint:
	$(AM_V_at)$(SHELL) $(top_srcdir)/tools/lint/run

format:
	$(AM_V_at)$(SHELL) $(top_srcdir)/tools/lint/format --fix

# For editors and clang-tidy: the whole tree is compiled once more, in a folder of its own, and bear writes down how.
compile_commands.json:
	$(AM_V_at)test -n "$(BEAR)" || { echo "compile_commands.json needs bear (apt-get install bear)" >&2; exit 1; }
	$(AM_V_at)rm -rf build-commands && mkdir build-commands
	$(AM_V_GEN)source=$$(cd $(srcdir) && pwd); cd build-commands && "$$source/configure" --disable-shared $(HOOP_CONFIGURE_ARGUMENTS) >configure.out \
		&& $(BEAR) --output "$$source/compile_commands.json" -- $(MAKE) all $(check_PROGRAMS)
