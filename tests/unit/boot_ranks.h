// SPDX-License-Identifier: BSD-3-Clause
/* For the tests of the rendezvous: ranks that are threads and do one deed each, and raw clients that speak its messages
 * as they like. */
#ifndef BOOT_RANKS_H
#define BOOT_RANKS_H

#include <pthread.h>

#include "base/clock.h"
#include "base/status.h"
#include "boot/boot.h"
#include "boot/message.h"
#include "wire/sock.h"

enum { RANKS = 12 };

enum deed { AGREE, FAIL, DIE, STALL, BLAME };

/* One rank as a thread, and how it fared. */
struct rank {
    pthread_t thread;
    const struct hoop_unique_id *id;
    int rank, ranks;
    double timeout;
    const char *slots; /* value of the setting SLOTS, or NULL */
    enum deed deed;
    pthread_barrier_t *met; /* waited for between the phases, or NULL */
    enum hoop_status status;
    bool joined, early;
    char text[HOOP_ERROR_TEXT];
};

extern int before;               /* open descriptors when the test began */
extern struct hoop_unique_id id; /* of the test, and its parts */
extern struct hoop_id parts;

int open_descriptors(void);

/* Fixture: a fresh id; at the end as many open descriptors as before. The server closes its ends a moment after the ranks. */
void meeting_begin(void);
void meeting_end(void);

/* Ranks 0 … n - 1 with nothing special about them. */
void plain(struct rank *ranks, int n);

/* Let them live: start and finish, or both. */
void start(struct rank *ranks, int n);
void finish(struct rank *ranks, int n);
void run(struct rank *ranks, int n);

void all_got(const struct rank *ranks, int n, enum hoop_status status, const char *text);

/* Connect and get through the challenge. */
int raw_connect(struct hoop_seal *seal);

/* A good hello of that rank. */
void raw_hello(struct hoop_hello *hello, int rank, int ranks);
void send_hello(int sock, const struct hoop_hello *hello, const struct hoop_seal *seal);

/* The next message: its type; its body (of size bytes at most) if it is properly sealed. */
unsigned raw_receive(int sock, struct hoop_seal *seal, unsigned char *body, size_t size, size_t *bytes);

/* Join as a rank that then does as it likes. */
int raw_join(struct hoop_seal *seal, int rank, int ranks);

#endif
