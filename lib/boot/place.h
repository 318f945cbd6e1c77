// SPDX-License-Identifier: BSD-3-Clause
/* Meeting at an agreed place, for launchers that have no key store: all ranks know a host and a port, and hold one secret; from these
 * every rank makes the same unique id by itself. Rank 0 serves it; who comes earlier tries again. */
#ifndef HOOP_BOOT_PLACE_H
#define HOOP_BOOT_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/settings.h"
#include "hoop.h"

enum { HOOP_PLACE_HOST = 256, HOOP_PLACE_KEY = 32 };

struct hoop_place {
    char host[HOOP_PLACE_HOST]; /* a name or a literal address */
    uint16_t port;
};

/* Read "host:port", "10.0.0.1:29500" or "[fd00::1]:29500". what: names the variable in errors.   Errors: HOOP_ERR_SETUP. */
enum hoop_status hoop_place_parse(struct hoop_place *place, const char *what, const char *text);

/* The first host of a list as Slurm writes it: "n[01-04,7],m" gives n01. False: it is malformed, or longer than HOOP_PLACE_HOST. */
bool hoop_place_first_host(const char *list, char host[HOOP_PLACE_HOST]);

/* A port from 20000 to 31999 that a job's name decides. */
uint16_t hoop_place_port(const char *job);

/* The key that all ranks hold: of HOOP_SECRET, of the file that HOOP_SECRET_FILE names, or, with HOOP_INSECURE=1, one that everybody knows.
 *
 * from   receives where it is from, static.
 * Blocking: on the file.   Errors: HOOP_ERR_SETUP (none of them is given, two are, or what is given is no secret: shorter than 32
 * characters, or a file that others can read). */
enum hoop_status hoop_place_key(const struct hoop_settings *settings, unsigned char key[HOOP_PLACE_KEY],
                                const char **from);

/* Make the id of the job's ranks for this place.
 *
 * job    text, equal on all ranks, that tells this meeting from others at the same place.
 * first  this is rank 0: serve it.
 * Blocking: on the resolver of names.   Threads: any.
 * Errors: HOOP_ERR_SETUP (no such host, or an address that rank 0 cannot serve at), HOOP_ERR_MEMORY. */
enum hoop_status hoop_place_id(const struct hoop_place *place, const unsigned char key[HOOP_PLACE_KEY], const char *job,
                               bool first, struct hoop_unique_id *id);

#endif
