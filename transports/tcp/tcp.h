// SPDX-License-Identifier: BSD-3-Clause
/* What opens a tcp domain. */
#ifndef HOOP_TRANSPORTS_TCP_H
#define HOOP_TRANSPORTS_TCP_H

#include "wire/auth.h"

/* Read by open only. */
struct hoop_tcp_setup {
    unsigned char key[HOOP_AUTH_KEY]; /* the communicator's; who does not hold it can neither connect nor answer */
    const char *interfaces;           /* as wire/iface.h has it; "": all that other hosts may be told of */
    uint16_t first_port, last_port;   /* listen on one of these; 0: any */
    bool
        both_ways; /* on odd lanes the higher rank connects, not the lower: with two lanes each learns when nobody listens any more */
    bool reno; /* to peers on this kernel: there is no network to be fair to, so nothing is paced */
};

#endif
