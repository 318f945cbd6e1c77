// SPDX-License-Identifier: BSD-3-Clause
/* Interfaces, from getifaddrs and sysfs. */
#include "wire/iface.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "wire/auth.h"

enum { FILTER_ENTRY = 64, BOOT_ID = 36 };

/* ---- addresses ---- */

bool hoop_address_near(const struct hoop_address *a, const struct hoop_address *b, int bits)
{
    if (a->family != b->family)
        return false;
    for (int bit = 0; bit < bits; bit++)
        if ((a->host[bit / 8] ^ b->host[bit / 8]) >> (7 - bit % 8) & 1)
            return false;
    return true;
}

bool hoop_address_is_loopback(const struct hoop_address *address)
{
    static const unsigned char one[16] = {[15] = 1};

    return address->family == 6 ? memcmp(address->host, one, sizeof one) == 0 : address->host[0] == 127;
}

bool hoop_address_is_link_local(const struct hoop_address *address)
{
    return address->family == 6 && address->host[0] == 0xfe && (address->host[1] & 0xc0) == 0x80;
}

/* ---- the list ---- */

static int mask_bits(const void *mask, size_t bytes)
{
    const unsigned char *at = mask;
    int bits = 0;

    for (size_t i = 0; i < bytes; i++)
        bits += __builtin_popcount(at[i]);
    return bits;
}

/* Fill in the address; false: of a family that is not ours. */
static bool read_address(const struct ifaddrs *from, struct hoop_iface *iface)
{
    if (from->ifa_addr->sa_family == AF_INET) {
        iface->address.family = 4;
        memcpy(iface->address.host, &((const struct sockaddr_in *)from->ifa_addr)->sin_addr, 4);
        iface->prefix =
            (uint8_t)(from->ifa_netmask ? mask_bits(&((const struct sockaddr_in *)from->ifa_netmask)->sin_addr, 4)
                                        : 32);
        return true;
    }
    if (from->ifa_addr->sa_family != AF_INET6)
        return false;
    iface->address.family = 6;
    memcpy(iface->address.host, &((const struct sockaddr_in6 *)from->ifa_addr)->sin6_addr, 16);
    iface->prefix =
        (uint8_t)(from->ifa_netmask ? mask_bits(&((const struct sockaddr_in6 *)from->ifa_netmask)->sin6_addr, 16)
                                    : 128);
    if (hoop_address_is_link_local(&iface->address))
        iface->address.scope = ((const struct sockaddr_in6 *)from->ifa_addr)->sin6_scope_id;
    return true;
}

/* Has a port of a bridge a device behind it? */
static bool has_device(const char *bridge)
{
    char path[300];
    struct stat found;
    bool has = false;

    snprintf(path, sizeof path, "/sys/class/net/%s/brif", bridge);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return false;
    for (const struct dirent *entry = readdir(folder); entry != NULL && !has; entry = readdir(folder)) {
        snprintf(path, sizeof path, "/sys/class/net/%.200s/device", entry->d_name);
        has = entry->d_name[0] != '.' && stat(path, &found) == 0;
    }
    closedir(folder);
    return has;
}

static bool is_isolated(const char *name)
{
    char path[64];
    struct stat found;

    snprintf(path, sizeof path, "/sys/class/net/%s/bridge", name);
    return stat(path, &found) == 0 && !has_device(name);
}

int hoop_iface_list(struct hoop_iface *list, int most)
{
    struct ifaddrs *all;
    int count = 0;

    if (getifaddrs(&all) != 0) {
        hoop_fail_errno(HOOP_ERR_SYSTEM, "cannot list the network interfaces");
        return -1;
    }
    for (const struct ifaddrs *one = all; one != NULL && count < most; one = one->ifa_next) {
        struct hoop_iface *iface = &list[count];
        *iface = (struct hoop_iface){.loopback = one->ifa_flags & IFF_LOOPBACK,
                                     .running = (one->ifa_flags & IFF_UP) && (one->ifa_flags & IFF_RUNNING)};
        if (one->ifa_addr == NULL || !read_address(one, iface))
            continue;
        snprintf(iface->name, sizeof iface->name, "%s", one->ifa_name);
        iface->isolated = is_isolated(iface->name);
        count++;
    }
    freeifaddrs(all);
    return count;
}

void hoop_iface_print(const struct hoop_iface *list, int count, char *text, size_t size)
{
    size_t used = 0;

    snprintf(text, size, "none");
    for (int i = 0; i < count && used < size; i++) {
        char host[INET6_ADDRSTRLEN] = "?";
        inet_ntop(list[i].address.family == 6 ? AF_INET6 : AF_INET, list[i].address.host, host, sizeof host);
        used += (size_t)snprintf(text + used, size - used, "%s%s (%s/%d%s)", i ? " " : "", list[i].name, host,
                                 list[i].prefix, list[i].running ? "" : ", down");
    }
}

/* ---- the filter ---- */

/* Does an entry name this interface or address? -1: the entry is malformed. */
static int fits(const char *entry, const struct hoop_iface *iface)
{
    const size_t length = strlen(entry);
    const char *slash = strchr(entry, '/');
    struct hoop_address network;
    char host[FILTER_ENTRY], *end;

    if (slash == NULL) {
        if (length > 0 && entry[length - 1] == '*')
            return strncmp(entry, iface->name, length - 1) == 0;
        return strcmp(entry, iface->name) == 0;
    }
    snprintf(host, sizeof host, "%.*s", (int)(slash - entry), entry);
    const unsigned long bits = strtoul(slash + 1, &end, 10);
    if (hoop_address_parse(&network, host) != HOOP_OK || end == slash + 1 || *end != 0 ||
        bits > (network.family == 6 ? 128 : 32))
        return -1;
    return hoop_address_near(&network, &iface->address, (int)bits);
}

struct filter {
    const char *text;
    bool includes; /* any entry that does */
    bool *wanted, *unwanted;
};

static enum hoop_status apply_entry(struct filter *filter, const char *entry, const struct hoop_iface *list, int count)
{
    const bool excludes = entry[0] == '^';
    bool found = false;
    char there[512];

    filter->includes |= !excludes;
    for (int i = 0; i < count; i++) {
        const int fit = fits(entry + excludes, &list[i]);
        if (fit < 0)
            return hoop_fail(HOOP_ERR_SETUP,
                             "HOOP_IFACE=%s: '%s' is no network; give names (eth0), beginnings (ib*) or networks "
                             "(10.1.0.0/16), with ^ before what is to be left out",
                             filter->text, entry + excludes);
        found |= fit > 0 && list[i].running;
        (excludes ? filter->unwanted : filter->wanted)[i] |= fit > 0;
    }
    if (found || excludes)
        return HOOP_OK;
    hoop_iface_print(list, count, there, sizeof there);
    return hoop_fail(HOOP_ERR_SETUP, "HOOP_IFACE=%s: no interface that is up fits '%s'; there are: %s", filter->text,
                     entry, there);
}

static enum hoop_status apply(struct filter *filter, const struct hoop_iface *list, int count)
{
    enum hoop_status status = HOOP_OK;
    const char *at = filter->text;

    while (status == HOOP_OK && *at != 0) {
        const size_t length = strcspn(at, ",");
        char entry[FILTER_ENTRY];

        if (length == 0 || length >= sizeof entry)
            return hoop_fail(HOOP_ERR_SETUP, "HOOP_IFACE=%s: an entry is empty or longer than %d characters",
                             filter->text, FILTER_ENTRY - 1);
        snprintf(entry, sizeof entry, "%.*s", (int)length, at);
        status = apply_entry(filter, entry, list, count);
        at += length + (at[length] == ',');
    }
    return status;
}

enum hoop_status hoop_iface_choose(struct hoop_iface *list, int *count, const char *filter)
{
    enum { MOST = 256 };
    bool wanted[MOST] = {false}, unwanted[MOST] = {false};
    struct filter all = {.text = filter, .wanted = wanted, .unwanted = unwanted};
    const int there = *count < MOST ? *count : MOST;
    int kept = 0;

    const enum hoop_status status = apply(&all, list, there);
    if (status != HOOP_OK)
        return status;
    for (int i = 0; i < there; i++)
        if (list[i].running && !unwanted[i] && (all.includes ? wanted[i] : !list[i].loopback && !list[i].isolated))
            list[kept++] = list[i];
    *count = kept;
    return HOOP_OK;
}

/* ---- home ---- */

static bool read_boot(char boot[BOOT_ID])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    const bool read = file != NULL && fread(boot, 1, BOOT_ID, file) == BOOT_ID;

    if (file != NULL)
        fclose(file);
    return read;
}

static void digest(unsigned char home[HOOP_NET_HOME], const void *facts, size_t bytes)
{
    unsigned char all[16];

    hoop_auth_digest(all, sizeof all, facts, bytes);
    memcpy(home, all, HOOP_NET_HOME);
}

void hoop_net_home(unsigned char home[HOOP_NET_HOME])
{
    struct {
        char boot[BOOT_ID + 4]; /* no gap behind it */
        uint64_t device, inode;
    } facts = {.boot = ""};
    struct stat space;

    memset(home, 0, HOOP_NET_HOME);
    if (!read_boot(facts.boot) || stat("/proc/self/ns/net", &space) != 0)
        return;
    facts.device = (uint64_t)space.st_dev;
    facts.inode = (uint64_t)space.st_ino;
    digest(home, &facts, sizeof facts);
}

void hoop_net_kernel(unsigned char kernel[HOOP_NET_HOME])
{
    char boot[BOOT_ID];

    memset(kernel, 0, HOOP_NET_HOME);
    if (read_boot(boot))
        digest(kernel, boot, sizeof boot);
}

/* Up to five digits; 0: there are none, or the port is too great. */
static unsigned long take_port(const char **text)
{
    unsigned long port = 0;

    for (int digits = 0; **text >= '0' && **text <= '9'; (*text)++)
        if (++digits > 5 || (port = port * 10 + (unsigned long)(**text - '0')) > 65535)
            return 0;
    return port;
}

bool hoop_ports_read(const char *text, uint16_t *first, uint16_t *last)
{
    const unsigned long one = take_port(&text);
    unsigned long other = one;

    if (*text == '-') {
        text++;
        other = take_port(&text);
    }
    if (one == 0 || other < one || *text != 0)
        return false;
    *first = (uint16_t)one;
    *last = (uint16_t)other;
    return true;
}
