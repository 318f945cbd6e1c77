// SPDX-License-Identifier: BSD-3-Clause
/* The manual page: an argp option table, sections and the settings as roff with the man macros. */
#include "manual.h"

#include <ctype.h>
#include <hoop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text with what roff would interpret made literal. A line must not begin with a control character. */
static void put_text(const char *text, size_t length)
{
    if (length > 0 && (*text == '.' || *text == '\''))
        fputs("\\&", stdout);
    for (size_t i = 0; i < length; i++) {
        switch (text[i]) {
        case '\\':
            fputs("\\e", stdout);
            break;
        case '-':
            fputs("\\-", stdout);
            break;
        case '\'':
            fputs("\\(aq", stdout);
            break;
        case '^':
            fputs("\\(ha", stdout);
            break;
        case '~':
            fputs("\\(ti", stdout);
            break;
        default:
            putchar(text[i]);
        }
    }
}

static void put_string(const char *text)
{
    put_text(text, strlen(text));
}

static void put_item(const char *term, size_t term_length, const char *meaning, size_t meaning_length)
{
    printf(".TP\n\\fB");
    put_text(term, term_length);
    printf("\\fR\n");
    put_text(meaning, meaning_length);
    putchar('\n');
}

/* Plain text (see manual.h) as roff. */
static void put_paragraphs(const char *text, size_t size)
{
    bool verbatim = false, fresh = true;

    for (const char *line = text, *end = text + size; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const size_t length = newline != NULL ? (size_t)(newline - line) : (size_t)(end - line);
        const char *tab = memchr(line, '\t', length);

        if (verbatim != (length > 0 && *line == ' '))
            puts((verbatim = !verbatim) ? ".PP\n.nf" : ".fi");
        else if (fresh && length > 0 && tab == NULL && line != text)
            puts(".PP");
        if (tab != NULL) {
            put_item(line, (size_t)(tab - line), tab + 1, length - (size_t)(tab + 1 - line));
        } else if (length > 0) {
            put_text(line, length);
            putchar('\n');
        }
        fresh = length == 0;
        line += length + (newline != NULL);
    }
    if (verbatim)
        puts(".fi");
}

static void put_option_name(const char *dash, const char *name, size_t length, const struct argp_option *option,
                            const char *argument, bool last)
{
    printf("\\fB%s", dash);
    put_text(name, length);
    printf("\\fR");
    if (argument != NULL && last) {
        printf(option->flags & OPTION_ARG_OPTIONAL ? "[=\\fI" : dash[2] != '\0' ? "=\\fI" : " \\fI");
        put_string(argument);
        printf(option->flags & OPTION_ARG_OPTIONAL ? "\\fR]" : "\\fR");
    }
}

/* An option and the aliases that follow it: "-b, --minbytes=SIZE". Returns the last entry used. */
static const struct argp_option *put_option(const struct argp_option *first)
{
    const struct argp_option *last = first;

    while ((last[1].flags & OPTION_ALIAS) && (last[1].name != NULL || last[1].key != 0))
        last++;
    printf(".TP\n");
    for (const struct argp_option *o = first; o <= last; o++) {
        const bool is_short = o->key > 0 && o->key < 128 && isprint(o->key);
        const char letter = (char)o->key;

        if (o != first)
            printf(", ");
        if (is_short)
            put_option_name("\\-", &letter, 1, first, first->arg, o->name == NULL && o == last);
        if (is_short && o->name != NULL)
            printf(", ");
        if (o->name != NULL)
            put_option_name("\\-\\-", o->name, strlen(o->name), first, first->arg, o == last);
    }
    putchar('\n');
    put_string(first->doc != NULL ? first->doc : "");
    putchar('\n');
    return last;
}

static void put_options(const struct argp_option *option)
{
    puts(".SH OPTIONS");
    for (; option != NULL && (option->name != NULL || option->key != 0 || option->doc != NULL); option++) {
        if (option->name == NULL && option->key == 0) { /* a heading */
            printf(".SS ");
            put_string(option->doc);
            putchar('\n');
        } else if (!(option->flags & (OPTION_HIDDEN | OPTION_DOC))) {
            option = put_option(option);
        }
    }
    puts(".SS Others\n"
         ".TP\n\\fB\\-?\\fR, \\fB\\-\\-help\\fR\nshow a help text and exit\n"
         ".TP\n\\fB\\-\\-usage\\fR\nshow a short usage and exit\n"
         ".TP\n\\fB\\-V\\fR, \\fB\\-\\-version\\fR\nshow the version and exit");
}

static void put_synopsis(const struct hoop_manual *manual)
{
    const char *form = manual->argp->args_doc != NULL ? manual->argp->args_doc : "";

    puts(".SH SYNOPSIS");
    for (bool first = true; first || *form != '\0'; first = false) { /* one line a form; at least one */
        const size_t length = strcspn(form, "\n");

        printf("%s.B ", first ? "" : ".br\n");
        put_string(manual->name);
        printf("\n[\\fIOPTION\\fR...] \\fI");
        put_text(form, length);
        puts("\\fR");
        form += length + (form[length] == '\n');
    }
}

/* The defaults, whatever the environment of the build says: a value in force may also be a secret. */
static void put_settings(void)
{
    struct hoop_setting setting;

    puts(".SH ENVIRONMENT\nSettings are read when a communicator is made.");
    for (int i = 0; hoop_setting_get(i, &setting); i++) {
        char variable[128];

        snprintf(variable, sizeof(variable), "HOOP_%s", setting.name);
        unsetenv(variable);
        if (!hoop_setting_get(i, &setting))
            break;
        printf(".TP\n\\fB");
        put_string(variable);
        printf("\\fR");
        if (setting.value != NULL && setting.value[0] != '\0') {
            printf(" (");
            put_string(setting.value);
            printf(")");
        }
        putchar('\n');
        put_string(setting.help);
        putchar('\n');
    }
}

static void put_title(const char *name)
{
    const int version = hoop_version();

    printf(".TH ");
    for (const char *c = name; *c != '\0'; c++)
        *c == '-' ? (void)fputs("\\-", stdout) : (void)putchar(toupper((unsigned char)*c));
    printf(" 1 \"\" \"hoop %d.%d.%d\" \"hoop manual\"\n", version / 10000, version / 100 % 100, version % 100);
}

void hoop_manual_write_page(const struct hoop_manual *manual)
{
    const char *doc = manual->argp->doc != NULL ? manual->argp->doc : "";
    const size_t before = strcspn(doc, "\v");

    put_title(manual->name);
    printf(".SH NAME\n");
    put_string(manual->name);
    printf(" \\- ");
    put_string(manual->summary);
    putchar('\n');
    put_synopsis(manual);
    puts(".SH DESCRIPTION");
    put_paragraphs(doc, before);
    put_options(manual->argp->options);
    if (doc[before] == '\v') {
        puts(".SH NOTES");
        put_paragraphs(doc + before + 1, strlen(doc + before + 1));
    }
    for (const struct hoop_manual_section *s = manual->sections; s != NULL && s->title != NULL; s++) {
        printf(".SH ");
        put_string(s->title);
        putchar('\n');
        put_paragraphs(s->text, strlen(s->text));
    }
    if (manual->settings)
        put_settings();
}
