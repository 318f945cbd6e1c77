// SPDX-License-Identifier: BSD-3-Clause
/* The registry: transports.def as a table. */
#include "transports/transports.h"

#include <string.h>

#include "base/status.h"

static const struct {
    const struct hoop_transport *transport;
    const char *help;
} table[] = {
#define TRANSPORT(name, help) {&hoop_transport_##name, help},
#include "transports/transports.def"
#undef TRANSPORT
};

#define TRANSPORT(name, help) " " #name
static const char names[] =
#include "transports/transports.def"
    ;
#undef TRANSPORT

const struct hoop_transport *hoop_transport_get(int i, const char **help)
{
    if (i < 0 || (size_t)i >= sizeof table / sizeof table[0])
        return NULL;
    if (help)
        *help = table[i].help;
    return table[i].transport;
}

const struct hoop_transport *hoop_transport_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].transport->name, name) == 0)
            return table[i].transport;
    hoop_fail(HOOP_ERR_ARG, "no transport is called %s; there are:%s", name, names);
    return NULL;
}
