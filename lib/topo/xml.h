// SPDX-License-Identifier: BSD-3-Clause
/* XML through expat, with the caps that files of strangers need. */
#ifndef HOOP_TOPO_XML_H
#define HOOP_TOPO_XML_H

#include <stdbool.h>

#include "base/status.h"

/* What a reader does with the elements, in the order of the text. */
struct hoop_xml_reader {
    /* An element begins; attributes are name, value, name, value … NULL. Its error ends the parse. */
    enum hoop_status (*open)(void *user, const char *element, const char *const *attributes);
    /* The element that was opened last and not closed ends. */
    void (*close)(void *user);
    void *user;
};

/* Parse a text that ends with a NUL. Elements may be nested 128 deep; declared entities are refused.
 *
 * name     of the source, for errors.
 * reader   NULL: only look whether the text is well-formed.
 * Errors: HOOP_ERR_ARG (says the line and what is wrong), HOOP_ERR_MEMORY, and what the reader returned. */
enum hoop_status hoop_xml_parse(const char *text, const char *name, const struct hoop_xml_reader *reader);

/* The value of an attribute; NULL if it is not there. */
const char *hoop_xml_value(const char *const *attributes, const char *attribute);

#endif
