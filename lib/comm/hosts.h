// SPDX-License-Identifier: BSD-3-Clause
/* Which ranks share a host, and the way between hosts. See hosts.c. */
#ifndef HOOP_COMM_HOSTS_H
#define HOOP_COMM_HOSTS_H

#include "health/far.h"
#include "hoop/transport.h"
#include "wire/cursor.h"
#include "wire/iface.h"

struct hoop_comm;

struct hoop_host_address {
    uint16_t size; /* 0: none */
    unsigned char data[HOOP_ADDRESS_MAX];
};

/* What a rank tells the others. */
struct hoop_host_self {
    unsigned char host[HOOP_NET_HOME];   /* equal: to be tried as one host */
    unsigned char kernel[HOOP_NET_HOME]; /* equal: the hosts share processors, as containers do */
    struct hoop_host_address data, watch;
};

struct hoop_hosts {
    int count, own;    /* hosts, in the order of their first ranks; this rank's */
    int locals, place; /* ranks of this host; this rank's number among them */
    int leader;        /* the first rank of this host */
    int *of;           /* of each rank */
    bool unpaced;      /* all are containers of one machine, and HOOP_RENO is on */
    struct hoop_host_self *self;
    struct hoop_domain *domain;        /* for data; NULL: one host, no sockets */
    struct hoop_domain *watch;         /* for verdicts and signs of life */
    struct hoop_council_place *places; /* of each rank, for the monitor threads */
    struct hoop_far *far;
};

/* Open what others may have to reach, if this communicator can have ranks on other hosts.
 * Errors: HOOP_ERR_SETUP (HOOP_TRANSPORTS, HOOP_IFACE, HOOP_PORTS), HOOP_ERR_SYSTEM, HOOP_ERR_MEMORY. */
enum hoop_status hoop_hosts_open(struct hoop_comm *comm, const struct hoop_unique_id *id);

/* Open a domain of the network between hosts for one purpose, with a key of its own. both_ways: as struct hoop_tcp_setup has it;
 * shape: all but the context.
 * Errors: HOOP_ERR_SETUP (HOOP_IFACE, HOOP_PORTS), HOOP_ERR_SYSTEM, HOOP_ERR_MEMORY. */
enum hoop_status hoop_hosts_open_network(const struct hoop_comm *comm, const struct hoop_unique_id *id,
                                         const char *purpose, bool both_ways, const struct hoop_domain_setup *shape,
                                         struct hoop_domain **domain);

void hoop_hosts_tell(const struct hoop_comm *comm, struct hoop_host_self *self);
void hoop_hosts_put(struct hoop_writer *writer, const struct hoop_host_self *self);
void hoop_hosts_get(struct hoop_reader *reader, struct hoop_host_self *self);

/* comm->hosts.self is filled in: number the hosts; close what is not needed.
 * Errors: HOOP_ERR_UNSUPPORTED, HOOP_ERR_SETUP (a rank cannot be reached), the same on all ranks. */
enum hoop_status hoop_hosts_survey(struct hoop_comm *comm);

/* Do the ranks run on the same kernel, as far as they know? */
bool hoop_hosts_share_kernel(const struct hoop_host_self *a, const struct hoop_host_self *b);

/* The rank with that number among this host's. */
int hoop_hosts_local(const struct hoop_comm *comm, int place);

/* Ready the watch over other hosts; who has made the board notes their ranks on it, and joins their leaders. Errors: as connect. */
enum hoop_status hoop_hosts_join(struct hoop_comm *comm);

/* How algorithms are chosen where ranks are on several hosts: without the exchange in one step, and, where nobody has measured
 * them, by constants of what crosses hosts. */
void hoop_hosts_adjust(struct hoop_comm *comm);

/* Bytes of a frame that links to other hosts take. */
size_t hoop_hosts_frame(const struct hoop_comm *comm);

/* Make an id by which ranks of this communicator can meet, wherever they are. Errors: as hoop_unique_id_create. */
enum hoop_status hoop_hosts_create_id(const struct hoop_comm *comm, struct hoop_unique_id *id);

/* Close everything; the watch has been stopped, and no link is left. */
void hoop_hosts_close(struct hoop_comm *comm);

#endif
