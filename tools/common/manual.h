// SPDX-License-Identifier: BSD-3-Clause
/* One table, three texts: the help, the manual page and the completion of a program.
 *
 * A program describes itself once, by its argp option table and a struct hoop_manual, and calls hoop_manual_parse
 * instead of argp_parse. It then has
 *     --help         argp's help, followed by the sections (examples, exit codes)
 *     --version      "NAME (hoop) 0.1.0"
 *     --man          hidden: the manual page in roff, from the same tables
 *     --completion   hidden: a completion script for bash
 *
 * The build runs the finished program to make both files. In the program's local.mk:
 *
 *     bin_PROGRAMS += tools/foo/hoop-foo
 *     tools_foo_hoop_foo_SOURCES = tools/foo/main.c
 *     tools_foo_hoop_foo_CPPFLAGS = $(TOOL_CPPFLAGS)
 *     tools_foo_hoop_foo_LDADD = $(TOOL_LIBS)
 *     man1_MANS += tools/foo/hoop-foo.1
 *     completion_DATA += tools/foo/hoop-foo.bash
 *     tools/foo/hoop-foo.1: tools/foo/hoop-foo$(EXEEXT)
 *     	$(TOOL_MAN)
 *     tools/foo/hoop-foo.bash: tools/foo/hoop-foo$(EXEEXT)
 *     	$(TOOL_COMPLETION)
 *
 * Texts of sections are plain: an empty line parts paragraphs; lines that begin with a blank are shown as they are;
 * "term<TAB>meaning" is an item of a list, on one line. Paragraphs and meanings are filled. argp fills its doc, too: give each
 * of its paragraphs as one line.
 */
#ifndef HOOP_TOOLS_MANUAL_H
#define HOOP_TOOLS_MANUAL_H

#include <argp.h>
#include <stdbool.h>

struct hoop_manual_section {
    const char *title, *text; /* title in capitals, such as "EXAMPLES"; a NULL title ends the list */
};

/* What may follow an option, for the completion. Options with an argument and no entry here complete to nothing. */
struct hoop_manual_words {
    const char *option; /* long name without dashes; "" for the arguments that are no options; NULL ends the list */
    const char *words;  /* parted by blanks; or "@file", "@directory", "@command" (a program, then its own arguments) */
};

struct hoop_manual {
    const char *name, *summary;                 /* "hoop-foo", "one line without a full stop" */
    const struct argp *argp;                    /* options, parser, args_doc, doc; no children and no help filter */
    const struct hoop_manual_section *sections; /* or NULL */
    const struct hoop_manual_words *words;      /* or NULL */
    bool settings;                              /* add the table of HOOP_ settings to the page */
};

/* Parse the command line as argp_parse does, with the options above added.
 *
 * flags    of argp_parse, such as ARGP_IN_ORDER.   input: for the program's parser.
 * Does not return after --help, --version, --man, --completion and wrong usage (exit code 2).
 * Returns 0 or what the parser returned.   Threads: once, before others start. */
error_t hoop_manual_parse(const struct hoop_manual *manual, int argc, char **argv, unsigned flags, void *input);

/* The two writers, for hoop_manual_parse. */
void hoop_manual_write_page(const struct hoop_manual *manual);
void hoop_manual_write_completion(const struct hoop_manual *manual);

#endif
