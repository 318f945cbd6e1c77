// SPDX-License-Identifier: BSD-3-Clause
/* Recorded machines: reading the file, and a look at what it is before a parser gets it: the kind by the root element, the
 * version, whether it is whole. hwloc says little about what it does not read. The size is capped. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "topo/model.h"
#include "topo/xml.h"

enum { MOST_BYTES = 64 << 20 };

static const char synthetic_prefix[] = "synthetic:";

/* The first element that is not a declaration, comment or processing instruction; NULL if there is none. */
static const char *root_element(const char *text)
{
    while ((text = strchr(text, '<')) != NULL) {
        if (strncmp(text, "<!--", 4) == 0) {
            text = strstr(text, "-->");
            if (text == NULL)
                return NULL;
        } else if (text[1] != '?' && text[1] != '!') {
            return text + 1;
        } else {
            text++;
        }
    }
    return NULL;
}

static bool element_is(const char *element, const char *name)
{
    const size_t length = strlen(name);

    return strncmp(element, name, length) == 0 &&
           (isspace((unsigned char)element[length]) || element[length] == '>' || element[length] == '/');
}

/* Major version of the format; files of hwloc 1 do not say. */
static long format_version(const char *root)
{
    static const char name[] = "version=";
    const size_t length = strcspn(root, ">");
    const char *at = memmem(root, length, name, sizeof(name) - 1);

    if (at == NULL || (at[sizeof(name) - 1] != '"' && at[sizeof(name) - 1] != '\''))
        return 1;
    return strtol(at + sizeof(name), NULL, 10); /* behind the quote */
}

enum hoop_status hoop_topo_recognize(const char *text, const char *name, enum hoop_topo_form *form)
{
    const char *root = root_element(text);
    const long mine = (long)(hwloc_get_api_version() >> 16);

    *form = HOOP_TOPO_FORM_NCCL;
    if (root != NULL && element_is(root, "system"))
        return HOOP_OK;
    *form = HOOP_TOPO_FORM_OWN;
    if (root != NULL && element_is(root, "hoop-topology"))
        return HOOP_OK;
    if (root != NULL && element_is(root, "graphs"))
        return hoop_fail(HOOP_ERR_ARG,
                         "%s: a graph file of NCCL (rings and trees), not a topology; NCCL_TOPO_DUMP_FILE "
                         "names where NCCL writes one",
                         name);
    if (root == NULL || (!element_is(root, "topology") && !element_is(root, "root")))
        return hoop_fail(
            HOOP_ERR_ARG,
            "%s: neither XML of hwloc (lstopo FILE.xml), nor a topology file of NCCL or RCCL, nor one of hoop-topo "
            "--export hoop",
            name);
    *form = HOOP_TOPO_FORM_HWLOC;
    const long version = format_version(root);
    if (version > mine)
        return hoop_fail(HOOP_ERR_UNSUPPORTED,
                         "%s: hwloc XML of format %ld, and the hwloc here reads up to %ld; write it with lstopo "
                         "--export-xml-flags v2, "
                         "or install a newer hwloc",
                         name, version, mine);
    if (version < 2 && mine > 2)
        return hoop_fail(
            HOOP_ERR_UNSUPPORTED,
            "%s: hwloc XML of format 1, which hwloc %ld no longer reads; read and write it with lstopo of hwloc 2",
            name, mine);
    return hoop_xml_parse(text, name, NULL);
}

/* The whole file and a final NUL. */
static enum hoop_status read_whole(const char *path, int file, char **text, size_t *size)
{
    struct stat about;
    size_t room, used = 0;
    ssize_t got = 1;

    if (fstat(file, &about) != 0)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "%s", path);
    if (!S_ISREG(about.st_mode) || about.st_size > MOST_BYTES)
        return hoop_fail(HOOP_ERR_ARG, "%s: not a file of at most %d MiB", path, MOST_BYTES >> 20);
    room = (size_t)about.st_size;
    char *content = hoop_calloc(room + 1, 1);
    if (content == NULL)
        return HOOP_ERR_MEMORY;
    while (used < room && (got = read(file, content + used, room - used)) > 0)
        used += (size_t)got;
    if (got < 0) {
        const enum hoop_status status = hoop_fail_errno(HOOP_ERR_SYSTEM, "%s", path);
        hoop_free(content);
        return status;
    }
    *text = content;
    *size = used + 1;
    return HOOP_OK;
}

static enum hoop_status read_form(struct hoop_topo **topo, enum hoop_topo_form form, const char *text, size_t size,
                                  const char *path)
{
    switch (form) {
    case HOOP_TOPO_FORM_NCCL:
        return hoop_topo_read_nccl(topo, text, path);
    case HOOP_TOPO_FORM_OWN:
        return hoop_topo_read_own(topo, text, path);
    default:
        return hoop_topo_read_hwloc(topo, HOOP_TOPO_HWLOC_XML, text, (int)size, path, false);
    }
}

enum hoop_status hoop_topo_read_text(const char *path, char **text, size_t *size)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);

    if (file < 0)
        return hoop_fail_errno(HOOP_ERR_SYSTEM, "%s", path);
    const enum hoop_status status = read_whole(path, file, text, size);
    close(file);
    if (status == HOOP_OK && strlen(*text) + 1 != *size)
        return hoop_fail(HOOP_ERR_ARG, "%s: not a text: it has a NUL at byte %zu", path, strlen(*text));
    return status;
}

static enum hoop_status load_file(struct hoop_topo **topo, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    enum hoop_topo_form form;
    struct stat about;

    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return hoop_topo_read_sysfs(topo, path);
    enum hoop_status status = hoop_topo_read_text(path, &text, &size);
    if (status == HOOP_OK)
        status = hoop_topo_recognize(text, path, &form);
    if (status == HOOP_OK)
        status = read_form(topo, form, text, size, path);
    hoop_free(text);
    return status;
}

enum hoop_status hoop_topo_load(struct hoop_topo **topo, const char *path)
{
    if (topo == NULL || path == NULL)
        return hoop_fail(HOOP_ERR_ARG, "topology: no file name, or no place for the result");
    if (strncmp(path, synthetic_prefix, sizeof(synthetic_prefix) - 1) == 0)
        return hoop_topo_read_hwloc(topo, HOOP_TOPO_SYNTHETIC, path + sizeof(synthetic_prefix) - 1, 0, path, false);
    return load_file(topo, path);
}
