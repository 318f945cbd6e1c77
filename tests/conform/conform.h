// SPDX-License-Identifier: BSD-3-Clause
/* The conformance suite: what every transport must do, once, for all of them.
 *
 * A fixture opens two connected ends of one kind of link. Every case runs over every fixture; a case asks the fixture
 * (not the transport's name) where kinds differ. Cases drive both ends from one thread unless they say otherwise.
 */
#ifndef TESTS_CONFORM_H
#define TESTS_CONFORM_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

#include "hoop/transport.h"

struct ends;

struct fixture {
    const char *name;
    const struct hoop_transport *transport;
    bool loops;   /* both ends are one link: a rank with itself */
    bool lends;   /* a send of memory from ends_memory may be lent */
    bool by_turn; /* order of arrival is drawn by a seed */
    /* Fill in context[0], context[1] for two ranks, or say why it cannot. */
    enum hoop_status (*create)(struct ends *ends);
    void (*destroy)(struct ends *ends);
    /* Memory of this end that it can lend, at least 1 MiB. NULL: any will do. */
    unsigned char *(*memory)(struct ends *ends, int end);
};

extern const struct fixture fixtures[];
extern const int fixture_count;

enum { LANES = 2, MEMORY = 1 << 20 };

struct ends {
    const struct fixture *fixture;
    uint64_t seed;
    int slots;
    size_t frame;
    void *context[2];
    struct hoop_domain *domain[2];
    struct hoop_link *link[2]; /* lane 0 */
    unsigned char *memory[2];
};

/* Open both domains and connect lane 0. A failure fails the test. */
void ends_open(struct ends *ends, const struct fixture *fixture, int slots, size_t frame, uint64_t seed);
void ends_close(struct ends *ends);

/* Parts of it, for cases about opening. */
void ends_create(struct ends *ends, const struct fixture *fixture, int slots, size_t frame, uint64_t seed);
void ends_destroy(struct ends *ends);
struct hoop_domain_setup ends_setup(const struct ends *ends, int end);
struct hoop_link *ends_connect(struct ends *ends, int end, int lane);

/* Call progress of both until nothing is on its way any more. */
void ends_settle(struct ends *ends);

/* Wait (with progress) until the counter reaches `least` or the link dies. */
void wait_sent(struct ends *ends, int end, uint64_t least);
void wait_received(struct ends *ends, int end, uint64_t least);

/* Send or receive, with progress while there is no room; returns the final status. */
enum hoop_status push(struct ends *ends, int end, const void *data, size_t bytes, uint64_t tag, unsigned flags);
enum hoop_status pull(struct ends *ends, int end, void *data, size_t bytes, uint64_t tag);

/* Bytes that only frame `number` has. */
void pattern_fill(unsigned char *data, size_t bytes, uint64_t number);
bool pattern_holds(const unsigned char *data, size_t bytes, uint64_t number);

/* Random numbers of a seed. */
uint64_t draw(uint64_t *state);

/* The seed of a run: HOOP_TEST_SEED, or a new one. */
uint64_t test_seed(void);

/* Every file of cases adds its own. */
void add_moving(Suite *suite);
void add_ending(Suite *suite);
void add_random(Suite *suite);
void add_apart(Suite *suite);

#endif
