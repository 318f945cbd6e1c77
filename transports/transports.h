// SPDX-License-Identifier: BSD-3-Clause
/* The registry of transports; the list is transports.def. */
#ifndef HOOP_TRANSPORTS_H
#define HOOP_TRANSPORTS_H

#include "hoop/transport.h"

#define TRANSPORT(name, help) extern const struct hoop_transport hoop_transport_##name;
#include "transports/transports.def"
#undef TRANSPORT

/* Entry i of the list, NULL past the end; *help (may be NULL) receives what it is for. */
const struct hoop_transport *hoop_transport_get(int i, const char **help);

/* The transport of this name, or NULL with the error recorded (it lists the names there are). */
const struct hoop_transport *hoop_transport_find(const char *name);

#endif
