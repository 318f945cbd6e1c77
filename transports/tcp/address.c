// SPDX-License-Identifier: BSD-3-Clause
/* Where a domain can be reached: its blob, and which addresses of a peer's to try.
 *
 * The blob holds the addresses that other hosts may use, and the home: processes whose home is the same share loopback, whose address
 * is therefore never sent. A code over the whole, by the communicator's key, keeps a damaged blob from making us knock at strangers'
 * doors.
 */
#include <string.h>

#include "base/status.h"
#include "transports/tcp/inside.h"
#include "wire/cursor.h"

enum { MAGIC = 0x70637468, /* "htcp" */ CODE = 16 };

static size_t host_bytes(int family)
{
    return family == 6 ? 16 : 4;
}

static void code(const struct tcp_domain *domain, const unsigned char *blob, size_t bytes, unsigned char result[CODE])
{
    static const char purpose[] = "tcp address";
    const struct hoop_auth_part parts[] = {{purpose, sizeof purpose}, {blob, bytes}};
    unsigned char mac[HOOP_AUTH_MAC];

    hoop_auth_mac(mac, domain->key, parts, 2);
    memcpy(result, mac, CODE);
}

/* As many as fit. */
static unsigned count_that_fits(const struct tcp_domain *domain, size_t room)
{
    unsigned fit = 0;

    for (int i = 0; i < domain->addresses; i++) {
        const size_t bytes = 2 + host_bytes(domain->address[i].address.family);
        if (bytes > room)
            break;
        room -= bytes;
        fit++;
    }
    return fit;
}

size_t tcp_blob_write(const struct tcp_domain *domain, unsigned char *blob)
{
    struct hoop_writer writer = hoop_writer(blob, HOOP_ADDRESS_MAX);

    hoop_put_u32(&writer, MAGIC);
    hoop_put_u32(&writer, (uint32_t)domain->head.rank);
    hoop_put_bytes(&writer, domain->nonce, TCP_NONCE);
    hoop_put_bytes(&writer, domain->home, HOOP_NET_HOME);
    hoop_put_bytes(&writer, domain->kernel, HOOP_NET_HOME);
    hoop_put_u8(&writer, domain->loopback);
    for (int i = 0; i < TCP_LISTENERS; i++)
        hoop_put_u16(&writer, domain->port[i]);
    const unsigned count = count_that_fits(domain, HOOP_ADDRESS_MAX - hoop_writer_used(&writer) - 1 - (size_t)CODE);
    hoop_put_u8(&writer, (uint8_t)count);
    for (unsigned i = 0; i < count; i++) {
        const struct hoop_iface *iface = &domain->address[i];
        hoop_put_u8(&writer, iface->address.family);
        hoop_put_u8(&writer, iface->prefix);
        hoop_put_bytes(&writer, iface->address.host, host_bytes(iface->address.family));
    }
    code(domain, blob, hoop_writer_used(&writer), writer.at);
    return hoop_writer_used(&writer) + CODE;
}

enum hoop_status tcp_blob_read(const struct tcp_domain *domain, const unsigned char *data, size_t size,
                               struct tcp_blob *blob)
{
    unsigned char expected[CODE];
    struct hoop_reader reader = hoop_reader(data, size > CODE ? size - CODE : 0);

    memset(blob, 0, sizeof *blob);
    hoop_get_u32_range(&reader, MAGIC, MAGIC);
    blob->rank = (int)hoop_get_u32_range(&reader, 0, (uint32_t)domain->head.ranks - 1);
    hoop_get_bytes(&reader, blob->nonce, TCP_NONCE);
    hoop_get_bytes(&reader, blob->home, HOOP_NET_HOME);
    hoop_get_bytes(&reader, blob->kernel, HOOP_NET_HOME);
    blob->loopback = hoop_get_u8_range(&reader, 0, 1);
    for (int i = 0; i < TCP_LISTENERS; i++)
        blob->port[i] = hoop_get_u16(&reader);
    blob->addresses = hoop_get_u8_range(&reader, 0, TCP_ADDRESSES);
    for (int i = 0; i < blob->addresses; i++) {
        struct hoop_address *address = &blob->address[i];
        address->family = hoop_get_u8_range(&reader, 4, 6);
        blob->prefix[i] = hoop_get_u8_range(&reader, 0, 128);
        hoop_get_bytes(&reader, address->host, host_bytes(address->family));
        address->port = blob->port[address->family == 6];
        reader.failed |= address->family == 5 || blob->prefix[i] > 8 * host_bytes(address->family);
    }
    if (!hoop_reader_done(&reader) || size > HOOP_ADDRESS_MAX)
        return hoop_fail(HOOP_ERR_ARG, "%zu bytes that are not the tcp address of a rank below %d", size,
                         domain->head.ranks);
    code(domain, data, size - CODE, expected);
    if (!hoop_auth_equal(expected, data + size - CODE, CODE))
        return hoop_fail(HOOP_ERR_ARG, "the tcp address of rank %d is damaged, or another communicator's", blob->rank);
    return HOOP_OK;
}

/* ---- the way to a peer ---- */

/* Is it one of ours? Then it leads elsewhere than to the peer: an address that many hosts have for themselves. */
static bool is_ours(const struct tcp_domain *domain, const struct hoop_address *address)
{
    for (int i = 0; i < domain->addresses; i++)
        if (hoop_address_near(&domain->address[i].address, address, address->family == 6 ? 128 : 32))
            return true;
    return false;
}

/* The smaller, the likelier: what lies in a network of ours first; of equals, IPv4. */
static int distance(const struct tcp_domain *domain, const struct tcp_blob *blob, int i)
{
    const struct hoop_address *address = &blob->address[i];
    int far = 2;

    if (hoop_address_is_link_local(address))
        return 5;
    for (int k = 0; k < domain->addresses; k++)
        if (domain->address[k].prefix == blob->prefix[i] && blob->prefix[i] > 0 &&
            hoop_address_near(&domain->address[k].address, address, blob->prefix[i]))
            far = 0;
    return far + (address->family == 6);
}

static int add(struct hoop_address tries[TCP_TRIES], int count, struct hoop_address address)
{
    if (count < TCP_TRIES && address.port != 0)
        tries[count++] = address;
    return count;
}

/* A link-local address means something on one interface only; which one leads to the peer is not known. */
static int add_link_local(const struct tcp_domain *domain, struct hoop_address tries[TCP_TRIES], int count,
                          struct hoop_address address)
{
    for (int i = 0; i < domain->addresses; i++)
        if (hoop_address_is_link_local(&domain->address[i].address)) {
            address.scope = domain->address[i].address.scope;
            count = add(tries, count, address);
        }
    return count;
}

int tcp_tries(const struct tcp_domain *domain, const struct tcp_blob *blob, struct hoop_address tries[TCP_TRIES])
{
    const bool home = memcmp(domain->home, blob->home, HOOP_NET_HOME) == 0;
    int count = 0;

    if (home && domain->loopback && blob->loopback) {
        const struct hoop_address four = {.family = 4, .port = blob->port[0], .host = {127, 0, 0, 1}},
                                  six = {.family = 6, .port = blob->port[1], .host = {[15] = 1}};
        count = add(tries, add(tries, count, four), six);
    }
    for (int far = 0; far <= 5; far++)
        for (int i = 0; i < blob->addresses; i++) {
            const struct hoop_address *address = &blob->address[i];
            if (distance(domain, blob, i) != far || hoop_address_is_any(address) || hoop_address_is_loopback(address) ||
                (!home && is_ours(domain, address)))
                continue;
            count = far == 5 ? add_link_local(domain, tries, count, *address) : add(tries, count, *address);
        }
    return count;
}
