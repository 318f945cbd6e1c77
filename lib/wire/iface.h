// SPDX-License-Identifier: BSD-3-Clause
/* The addresses of this machine's network interfaces, and which of them other hosts may be told of.
 *
 * A filter is a list with commas: names (eth0), beginnings of names (ib*), networks (10.1.0.0/16, fd00::/64). A ^ before an entry
 * excludes it. With entries that include, nothing else is taken; without any, all but loopback and isolated bridges, whose
 * addresses mean another machine, or nothing, elsewhere.
 */
#ifndef HOOP_WIRE_IFACE_H
#define HOOP_WIRE_IFACE_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/sock.h"

enum { HOOP_IFACE_NAME = 16, HOOP_NET_HOME = 8 };

struct hoop_iface {
    char name[HOOP_IFACE_NAME];
    struct hoop_address address; /* port 0; scope set where it is link-local */
    uint8_t prefix;              /* bits of the network */
    bool loopback;
    bool isolated; /* a bridge with nothing behind it that could leave the machine */
    bool running;  /* up, with a carrier */
};

/* All addresses of this machine's interfaces, in the kernel's order; at most `most`. Returns how many.
 * Errors: -1, recorded (HOOP_ERR_SYSTEM). */
int hoop_iface_list(struct hoop_iface *list, int most);

/* Keep those of the list that the filter lets through and that are running; *count: before and after.
 * Errors: HOOP_ERR_SETUP (malformed, or an entry to include that fits nothing: says what there is). */
enum hoop_status hoop_iface_choose(struct hoop_iface *list, int *count, const char *filter);

/* The same as text for people: "eth0 (10.0.0.5/24) lo (127.0.0.1/8)". */
void hoop_iface_print(const struct hoop_iface *list, int count, char *text, size_t size);

/* Are the first `bits` of both hosts equal, and the families? */
bool hoop_address_near(const struct hoop_address *a, const struct hoop_address *b, int bits);

bool hoop_address_is_loopback(const struct hoop_address *address);
bool hoop_address_is_link_local(const struct hoop_address *address); /* IPv6 */

/* Ports, "40000" or "40000-40100": digits only, from 1, the last not below the first. False: not such a text; nothing is changed then. */
bool hoop_ports_read(const char *text, uint16_t *first, uint16_t *last);

/* What is equal for processes whose loopback and abstract Unix sockets are the same: the kernel's run and its network name space. Where
 * it cannot be told, zeros: to be tried. */
void hoop_net_home(unsigned char home[HOOP_NET_HOME]);

/* Which running kernel this is: those who share it share its processors. All zero where it cannot be told. */
void hoop_net_kernel(unsigned char kernel[HOOP_NET_HOME]);

#endif
