// SPDX-License-Identifier: BSD-3-Clause
/* The completion script for bash: a case over the previous word for options with an argument, else the list of
 * options or the arguments' own words. */
#include "manual.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *words_of(const struct hoop_manual *manual, const char *option)
{
    for (const struct hoop_manual_words *w = manual->words; w != NULL && w->option != NULL; w++)
        if (strcmp(w->option, option) == 0)
            return w->words;
    return NULL;
}

static void put_reply(const char *words)
{
    if (words == NULL)
        return;
    if (strcmp(words, "@file") == 0)
        printf("mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); ");
    else if (strcmp(words, "@directory") == 0)
        printf("mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"); ");
    else if (strcmp(words, "@command") == 0)
        printf("mapfile -t COMPREPLY < <(compgen -c -- \"$cur\"; compgen -f -- \"$cur\"); ");
    else
        printf("mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\"); ", words);
}

static bool is_entry(const struct argp_option *option)
{
    return option != NULL && (option->name != NULL || option->key != 0 || option->doc != NULL);
}

static bool is_shown(const struct argp_option *option)
{
    return (option->name != NULL || option->key != 0) && !(option->flags & (OPTION_HIDDEN | OPTION_DOC));
}

static bool has_letter(const struct argp_option *option)
{
    return option->key > 0 && option->key < 128 && isprint(option->key);
}

static void put_arguments_of_options(const struct hoop_manual *manual)
{
    for (const struct argp_option *o = manual->argp->options; is_entry(o); o++) {
        if (!is_shown(o) || o->arg == NULL)
            continue;
        printf("    ");
        if (has_letter(o))
            printf("-%c%s", o->key, o->name != NULL ? " | " : "");
        if (o->name != NULL)
            printf("--%s", o->name);
        printf(") ");
        put_reply(o->name != NULL ? words_of(manual, o->name) : NULL);
        puts("return ;;");
    }
}

static void put_option_list(const struct hoop_manual *manual)
{
    printf("    -*) mapfile -t COMPREPLY < <(compgen -W '");
    for (const struct argp_option *o = manual->argp->options; is_entry(o); o++) {
        if (!is_shown(o))
            continue;
        if (has_letter(o))
            printf("-%c ", o->key);
        if (o->name != NULL)
            printf("--%s ", o->name);
    }
    puts("--help --usage --version' -- \"$cur\") ;;");
}

void hoop_manual_write_completion(const struct hoop_manual *manual)
{
    char function[64];

    snprintf(function, sizeof(function), "_%s", manual->name);
    for (char *c = function; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    printf("# bash completion of %s\n%s()\n{\n", manual->name, function);
    puts("    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "    COMPREPLY=()\n"
         "    # bash parts --option=value at the sign\n"
         "    if [[ $cur == '=' ]]; then cur=; elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
         "    case $prev in");
    put_arguments_of_options(manual);
    puts("    esac\n    case $cur in");
    put_option_list(manual);
    printf("    *) ");
    put_reply(words_of(manual, ""));
    puts(";;\n    esac\n}");
    printf("complete -o bashdefault -o default -F %s %s\n", function, manual->name);
}
