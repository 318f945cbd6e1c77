// SPDX-License-Identifier: BSD-3-Clause
/* XML through expat: one parser for all that the library reads, and for a look at a file before hwloc gets it (whose small
 * parser believes what it reads: a file that was cut off crashes it). */
#include <expat.h>
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "topo/xml.h"

enum { MOST_DEPTH = 128 };

struct walk {
    XML_Parser parser;
    const struct hoop_xml_reader *reader;
    int depth;
    enum hoop_status status; /* of the reader */
    const char *wrong;       /* what we refuse and expat would not; NULL: nothing */
};

static void stop(struct walk *walk, enum hoop_status status, const char *wrong)
{
    walk->status = status;
    walk->wrong = wrong;
    XML_StopParser(walk->parser, XML_FALSE);
}

/* expat may still report elements after it was told to stop. */
static bool stopped(const struct walk *walk)
{
    return walk->status != HOOP_OK || walk->wrong != NULL;
}

static void XMLCALL on_start(void *user, const XML_Char *element, const XML_Char **attributes)
{
    struct walk *walk = user;

    if (stopped(walk))
        return;
    if (walk->depth == MOST_DEPTH) {
        stop(walk, HOOP_OK, "elements are nested too deep");
        return;
    }
    walk->depth++;
    if (walk->reader == NULL)
        return;
    const enum hoop_status status = walk->reader->open(walk->reader->user, element, (const char *const *)attributes);
    if (status != HOOP_OK)
        stop(walk, status, NULL);
}

static void XMLCALL on_end(void *user, const XML_Char *element)
{
    struct walk *walk = user;

    (void)element;
    if (stopped(walk))
        return;
    walk->depth--;
    if (walk->reader != NULL)
        walk->reader->close(walk->reader->user);
}

static void XMLCALL on_doctype(void *user, const XML_Char *name, const XML_Char *system, const XML_Char *public,
                               int has_internal_subset)
{
    (void)name;
    (void)system;
    (void)public;
    if (has_internal_subset)
        stop(user, HOOP_OK, "it declares entities");
}

static void *take(size_t size)
{
    return hoop_calloc(size, 1);
}

static void *resize(void *old, size_t size)
{
    return hoop_realloc(old, size, 1);
}

static enum hoop_status explain(const struct walk *walk, const char *name)
{
    const enum XML_Error error = XML_GetErrorCode(walk->parser);
    const unsigned long line = XML_GetCurrentLineNumber(walk->parser);

    if (walk->status != HOOP_OK)
        return walk->status;
    if (error == XML_ERROR_NO_MEMORY)
        return hoop_fail(HOOP_ERR_MEMORY, "%s: no memory to parse it", name);
    return hoop_fail(HOOP_ERR_ARG, "%s:%lu: not well-formed XML: %s", name, line,
                     walk->wrong != NULL ? walk->wrong : XML_ErrorString(error));
}

enum hoop_status hoop_xml_parse(const char *text, const char *name, const struct hoop_xml_reader *reader)
{
    static const XML_Memory_Handling_Suite memory = {take, resize, hoop_free};
    struct walk walk = {.parser = XML_ParserCreate_MM(NULL, &memory, NULL), .reader = reader, .status = HOOP_OK};
    const size_t length = strlen(text);
    enum hoop_status status = HOOP_OK;

    if (walk.parser == NULL)
        return hoop_fail(HOOP_ERR_MEMORY, "%s: no memory to parse it", name);
    XML_SetUserData(walk.parser, &walk);
    XML_SetElementHandler(walk.parser, on_start, on_end);
    XML_SetStartDoctypeDeclHandler(walk.parser, on_doctype);
    if (length > INT_MAX)
        status = hoop_fail(HOOP_ERR_ARG, "%s: %zu bytes are too many for one XML text", name, length);
    else if (XML_Parse(walk.parser, text, (int)length, XML_TRUE) != XML_STATUS_OK)
        status = explain(&walk, name);
    XML_ParserFree(walk.parser);
    return status;
}

const char *hoop_xml_value(const char *const *attributes, const char *attribute)
{
    for (; attributes[0] != NULL; attributes += 2)
        if (strcmp(attributes[0], attribute) == 0)
            return attributes[1];
    return NULL;
}
