// SPDX-License-Identifier: BSD-3-Clause
/* Is a text well-formed XML of the plain kind that hwloc writes?
 *
 * hwloc has two parsers, and the small one believes what it reads: a file that was cut off crashes it. So every file is
 * walked once before: elements closed in order, attributes quoted, one root, nesting limited, no entities declared. It
 * says nothing about what the elements mean. One pass, no allocation. */
#include <ctype.h>
#include <string.h>

#include "topo/model.h"

enum { MOST_DEPTH = 128 };

struct walk {
    const char *at; /* what comes next */
    struct {
        const char *name;
        size_t length;
    } open[MOST_DEPTH]; /* elements that are not closed yet */
    int depth;
    bool root; /* has been seen */
};

static size_t name_length(const char *text)
{
    size_t length = 0;

    while (isalnum((unsigned char)text[length]) || (text[length] != '\0' && strchr("_-.:", text[length]) != NULL))
        length++;
    return length;
}

static void skip_blanks(struct walk *walk)
{
    while (isspace((unsigned char)*walk->at))
        walk->at++;
}

/* NAME="VALUE" or NAME='VALUE'. Returns what is wrong, NULL if nothing. */
static const char *take_attribute(struct walk *walk)
{
    const size_t length = name_length(walk->at);
    const char quote = length > 0 && walk->at[length] == '=' ? walk->at[length + 1] : '\0';

    if (quote != '"' && quote != '\'')
        return "an attribute is not NAME=\"VALUE\"";
    walk->at += length + 2;
    while (*walk->at != quote) {
        if (*walk->at == '\0' || *walk->at == '<')
            return "an attribute's quote is not closed";
        walk->at++;
    }
    walk->at++;
    return NULL;
}

static const char *take_start(struct walk *walk)
{
    const char *name = walk->at;
    const size_t length = name_length(name);

    if (length == 0)
        return "an element has no name";
    if (walk->depth == MOST_DEPTH)
        return "elements are nested too deep";
    if (walk->depth == 0 && walk->root)
        return "there is more than one root element";
    walk->root = true;
    for (walk->at += length; *walk->at != '>' && *walk->at != '/';) {
        if (!isspace((unsigned char)*walk->at))
            return "an element is not closed";
        skip_blanks(walk);
        if (*walk->at == '>' || *walk->at == '/')
            break;
        const char *wrong = take_attribute(walk);
        if (wrong != NULL)
            return wrong;
    }
    if (*walk->at == '/') {
        walk->at += 2;
        return walk->at[-1] == '>' ? NULL : "an element is not closed";
    }
    walk->at++;
    walk->open[walk->depth].name = name;
    walk->open[walk->depth++].length = length;
    return NULL;
}

static const char *take_end(struct walk *walk)
{
    const size_t length = name_length(walk->at);

    if (walk->depth == 0 || length != walk->open[walk->depth - 1].length ||
        strncmp(walk->at, walk->open[walk->depth - 1].name, length) != 0)
        return "an element is closed that is not open";
    walk->depth--;
    walk->at += length;
    skip_blanks(walk);
    return *walk->at++ == '>' ? NULL : "an element is not closed";
}

/* <!-- … -->, <? … ?>, <!DOCTYPE …> */
static const char *take_other(struct walk *walk)
{
    const bool comment = strncmp(walk->at, "!--", 3) == 0;
    const char *closer = comment ? "-->" : *walk->at == '?' ? "?>" : ">";
    const char *end = strstr(walk->at + (comment ? 3 : 1), closer);

    if (end == NULL)
        return "a comment or declaration is not closed";
    if (*walk->at == '!' && !comment && memchr(walk->at, '[', (size_t)(end - walk->at)) != NULL)
        return "it declares entities";
    walk->at = end + strlen(closer);
    return NULL;
}

static int line_of(const char *text, const char *at)
{
    int line = 1;

    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

enum hoop_status hoop_topo_check_shape(const char *text, const char *name)
{
    struct walk walk = {.at = text};
    const char *wrong = NULL, *here = text;

    while (wrong == NULL && (here = strchr(walk.at, '<')) != NULL) {
        walk.at = here + 1;
        if (*walk.at == '/') {
            walk.at++;
            wrong = take_end(&walk);
        } else {
            wrong = *walk.at == '!' || *walk.at == '?' ? take_other(&walk) : take_start(&walk);
        }
    }
    if (wrong == NULL && (walk.depth > 0 || !walk.root)) {
        here = text + strlen(text);
        wrong = walk.root ? "it ends inside an element" : "it has no element";
    }
    return wrong == NULL ? HOOP_OK
                         : hoop_fail(HOOP_ERR_ARG, "%s:%d: not well-formed XML: %s", name, line_of(text, here), wrong);
}
