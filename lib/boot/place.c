// SPDX-License-Identifier: BSD-3-Clause
/* Agreed places: hosts and ports, the secret that the ranks hold, and the id that follows from both. */
#include "boot/place.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "boot/id.h"
#include "boot/rendezvous.h"
#include "wire/auth.h"
#include "wire/sock.h"

enum {
    SECRET_LEAST = 32,
    SECRET_MOST = 4096,
    PORT_FIRST = 20000, /* below the ports that kernels give out by themselves */
    PORTS = 12000
};

/* ---- host and port ---- */

enum hoop_status hoop_place_parse(struct hoop_place *place, const char *what, const char *text)
{
    const char *colon = strrchr(text, ':');
    const bool bracket = text[0] == '[';
    char *end = NULL;
    const unsigned long port = colon && colon[1] >= '0' && colon[1] <= '9' ? strtoul(colon + 1, &end, 10) : 0;
    const size_t bytes = colon ? (size_t)(colon - text) : 0;

    if (port < 1 || port > UINT16_MAX || *end != 0 || bytes <= 2u * bracket || bytes >= sizeof place->host ||
        (bracket ? colon[-1] != ']' : memchr(text, ':', bytes) != NULL))
        return hoop_fail(HOOP_ERR_SETUP, "%s=%.64s: give host:port, such as node1:29500 or [fd00::1]:29500", what,
                         text);
    snprintf(place->host, sizeof place->host, "%.*s", (int)(bytes - 2u * bracket), text + bracket);
    place->port = (uint16_t)port;
    return HOOP_OK;
}

bool hoop_place_first_host(const char *list, char host[HOOP_PLACE_HOST])
{
    size_t used = 0;

    for (const char *at = list; *at && *at != ','; at++) {
        if (*at == '[') { /* its first number, without the others */
            const size_t digits = strspn(at + 1, "0123456789"), inside = strcspn(at + 1, "[]");
            if (digits == 0 || at[1 + inside] != ']' || used + digits >= HOOP_PLACE_HOST)
                return false;
            memcpy(host + used, at + 1, digits);
            used += digits;
            at += 1 + inside;
        } else if (*at == ']' || *at <= ' ' || used + 1 >= HOOP_PLACE_HOST) {
            return false;
        } else {
            host[used++] = *at;
        }
    }
    host[used] = 0;
    return used > 0;
}

uint16_t hoop_place_port(const char *job)
{
    unsigned char digest[16];

    hoop_auth_digest(digest, sizeof digest, job, strlen(job));
    return (uint16_t)(PORT_FIRST + (digest[0] | digest[1] << 8) % PORTS);
}

/* IPv4 if the name has it: all ranks must come to the same choice. */
static enum hoop_status resolve(const struct hoop_place *place, struct hoop_address *address)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    char text[64];

    int error = getaddrinfo(place->host, NULL, &hints, &found);
    if (error != 0) {
        hints.ai_family = AF_INET6;
        error = getaddrinfo(place->host, NULL, &hints, &found);
    }
    if (error == 0) {
        error = getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST);
        freeaddrinfo(found);
    }
    if (error != 0)
        return hoop_fail(
            HOOP_ERR_SETUP,
            "the host %s, where the ranks are to meet, is not found: %s. HOOP_MEET=ADDRESS:PORT, the same on all "
            "ranks, names another place",
            place->host, gai_strerror(error));
    const enum hoop_status status = hoop_address_parse(address, text);
    address->port = place->port;
    return status;
}

/* ---- the secret ---- */

static enum hoop_status take_secret(const char *what, const char *text, size_t bytes, unsigned char key[HOOP_PLACE_KEY])
{
    while (bytes && (text[bytes - 1] == '\n' || text[bytes - 1] == '\r'))
        bytes--;
    if (bytes < SECRET_LEAST)
        return hoop_fail(
            HOOP_ERR_SETUP,
            "%s holds %zu characters, too few for a secret: make one of %d or more at random, as openssl rand "
            "-hex 32 does",
            what, bytes, SECRET_LEAST);
    hoop_auth_digest(key, HOOP_PLACE_KEY, text, bytes);
    return HOOP_OK;
}

static enum hoop_status check_file(const char *path, int file)
{
    struct stat about;

    if (file < 0 || fstat(file, &about) != 0)
        return hoop_fail_errno(HOOP_ERR_SETUP, "HOOP_SECRET_FILE=%.256s cannot be read", path);
    if (!S_ISREG(about.st_mode) || about.st_size > SECRET_MOST)
        return hoop_fail(HOOP_ERR_SETUP, "HOOP_SECRET_FILE=%.256s is no file of at most %d bytes", path, SECRET_MOST);
    if ((about.st_mode & 077) != 0 || (about.st_uid != geteuid() && about.st_uid != 0))
        return hoop_fail(
            HOOP_ERR_SETUP,
            "HOOP_SECRET_FILE=%.256s has mode %04o and owner %u: others may know what it holds; it must be yours, "
            "and chmod 600",
            path, (unsigned)about.st_mode & 07777u, (unsigned)about.st_uid);
    return HOOP_OK;
}

static enum hoop_status read_file(const char *path, unsigned char key[HOOP_PLACE_KEY])
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char text[SECRET_MOST];

    enum hoop_status status = check_file(path, file);
    if (status == HOOP_OK) {
        const ssize_t bytes = read(file, text, sizeof text);
        status = bytes < 0 ? hoop_fail_errno(HOOP_ERR_SETUP, "HOOP_SECRET_FILE=%.256s cannot be read", path)
                           : take_secret("the file of HOOP_SECRET_FILE", text, (size_t)bytes, key);
        hoop_auth_wipe(text, sizeof text);
    }
    if (file >= 0)
        close(file);
    return status;
}

enum hoop_status hoop_place_key(const struct hoop_settings *settings, unsigned char key[HOOP_PLACE_KEY],
                                const char **from)
{
    const struct hoop_setting_value *text = &settings->value[HOOP_SETTING_SECRET],
                                    *file = &settings->value[HOOP_SETTING_SECRET_FILE];
    const bool insecure = settings->value[HOOP_SETTING_INSECURE].size == 1;

    if (text->given + file->given + insecure > 1)
        return hoop_fail(
            HOOP_ERR_SETUP,
            "of HOOP_SECRET, HOOP_SECRET_FILE and HOOP_INSECURE=1 more than one is set: it is not clear which counts");
    *from = text->given ? "HOOP_SECRET" : file->given ? "HOOP_SECRET_FILE" : "HOOP_INSECURE=1: no secret";
    if (text->given)
        return take_secret("HOOP_SECRET", text->word, strlen(text->word), key);
    if (file->given)
        return read_file(file->word, key);
    if (!insecure)
        return hoop_fail(
            HOOP_ERR_SETUP,
            "no secret is known to all ranks, and without one any stranger could join: set HOOP_SECRET, the same "
            "for all, to 32 or more random characters (openssl rand -hex 32), or HOOP_SECRET_FILE to a file of "
            "mode 0600 that holds them and all ranks can read, or start with a launcher that has a key store; "
            "HOOP_INSECURE=1 goes without");
    memset(key, 0, HOOP_PLACE_KEY);
    return HOOP_OK;
}

/* ---- the id ---- */

static enum hoop_status serve(const struct hoop_place *place, struct hoop_id *id)
{
    char why[HOOP_ERROR_TEXT] = "";

    const enum hoop_status status = hoop_rendezvous_serve(id);
    if (status != HOOP_ERR_SYSTEM)
        return status;
    strncat(why, hoop_error_text(), sizeof why - 1);
    return hoop_fail(
        HOOP_ERR_SETUP,
        "rank 0 cannot serve the meeting at %s:%u: %s. HOOP_MEET=ADDRESS:PORT, the same on all ranks, names another "
        "place of rank 0's host",
        place->host, (unsigned)place->port, why);
}

enum hoop_status hoop_place_id(const struct hoop_place *place, const unsigned char key[HOOP_PLACE_KEY], const char *job,
                               bool first, struct hoop_unique_id *unique)
{
    struct hoop_id id = {.early = true};

    enum hoop_status status = hoop_auth_start();
    if (status == HOOP_OK)
        status = resolve(place, &id.address);
    if (status != HOOP_OK)
        return status;
    hoop_auth_digest(id.nonce, sizeof id.nonce, job, strlen(job));
    hoop_auth_derive(id.secret, key, "place", job, strlen(job));
    if (first)
        status = serve(place, &id);
    if (status == HOOP_OK)
        hoop_id_encode(&id, unique);
    hoop_auth_wipe(&id, sizeof id);
    return status;
}
