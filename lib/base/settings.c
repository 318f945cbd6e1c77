// SPDX-License-Identifier: BSD-3-Clause
/* The table of settings.def, its parser, and what grows from the two. Numbers are read without the C library's locale:
 * the host program may have set one in which 0.5 is no number. */
#include "base/settings.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"

enum kind { INT, SIZE, TIME, FLAG, WORD };

struct row {
    const char *name, *standard, *unit, *help;
    enum kind kind;
    bool agreed;
    double least, most;
};

static const struct row table[HOOP_SETTINGS] = {
#define ROW(name, kind, standard, unit, least, most, help, agreed) \
    {#name, standard, unit, help, kind, agreed, least, most},
#define SETTING(name, kind, standard, unit, least, most, help) ROW(name, kind, standard, unit, least, most, help, false)
#define AGREED(name, kind, standard, unit, least, most, help)  ROW(name, kind, standard, unit, least, most, help, true)
#include "base/settings.def"
#undef AGREED
#undef SETTING
#undef ROW
};

static const char *const log_levels[] = {"error", "warn", "info", "debug"};

static const char prefix[] = "HOOP_";
enum { PREFIX = sizeof prefix - 1 };

/* ---- one value ---- */

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Digits at *text as a whole number; moves *text behind them. False: none, or more than a uint64_t holds. */
static bool read_whole(const char **text, uint64_t *value)
{
    const char *at = *text;

    if (!digit(*at))
        return false;
    for (*value = 0; digit(*at); at++) {
        const uint64_t next = (uint64_t)(*at - '0');
        if (*value > (UINT64_MAX - next) / 10)
            return false;
        *value = *value * 10 + next;
    }
    *text = at;
    return true;
}

static bool parse_int(const char *text, struct hoop_setting_value *value)
{
    return read_whole(&text, &value->size) && *text == 0 && ((value->number = (double)value->size), true);
}

static bool parse_size(const char *text, struct hoop_setting_value *value)
{
    static const char suffixes[] = "kmgt";
    unsigned shift = 0;

    if (!read_whole(&text, &value->size))
        return false;
    if (*text != 0) {
        const char *suffix = strchr(suffixes, lower(*text++));
        if (suffix == NULL)
            return false;
        shift = 10 * (unsigned)(suffix - suffixes + 1);
    }
    if (*text != 0 || value->size > UINT64_MAX >> shift)
        return false;
    value->size <<= shift;
    value->number = (double)value->size;
    return true;
}

static bool parse_time(const char *text, struct hoop_setting_value *value)
{
    static const struct {
        const char *suffix;
        double seconds;
    } units[] = {{"", 1}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
    uint64_t whole;
    double number, place = 0.1;

    if (!read_whole(&text, &whole))
        return false;
    number = (double)whole;
    if (*text == '.') {
        if (!digit(*++text))
            return false;
        for (; digit(*text); text++, place /= 10)
            number += place * (*text - '0');
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(text, units[i].suffix) == 0) {
            value->number = number * units[i].seconds;
            return true;
        }
    }
    return false;
}

/* auto, none, cuda or cuda:N; value->size is N. */
static bool parse_device(const char *text, struct hoop_setting_value *value)
{
    const char *number = text + 5;

    if (strcmp(text, "auto") == 0 || strcmp(text, "none") == 0 || strcmp(text, "cuda") == 0)
        return true;
    return strncmp(text, "cuda:", 5) == 0 && read_whole(&number, &value->size) && *number == 0 && value->size < 65536;
}

static bool parse_word(enum hoop_setting_id id, const char *text, struct hoop_setting_value *value)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f)
            return false;
    if (id == HOOP_SETTING_DEVICE)
        return parse_device(text, value);
    if (id == HOOP_SETTING_EFFORT)
        return strcmp(text, "estimate") == 0 || strcmp(text, "measure") == 0;
    if (id != HOOP_SETTING_LOG)
        return true;
    for (size_t i = 0; i < sizeof log_levels / sizeof *log_levels; i++)
        if (strcmp(text, log_levels[i]) == 0)
            return true;
    return false;
}

static bool parse_kind(enum hoop_setting_id id, const char *text, struct hoop_setting_value *value)
{
    switch (table[id].kind) {
    case INT:
        return parse_int(text, value);
    case SIZE:
        return parse_size(text, value);
    case TIME:
        return parse_time(text, value);
    case FLAG:
        return parse_int(text, value) && value->size <= 1;
    case WORD:
        return parse_word(id, text, value);
    }
    return false;
}

static void allowed_text(enum hoop_setting_id id, char *text, size_t size)
{
    const struct row *row = &table[id];
    const uint64_t least = (uint64_t)row->least, most = (uint64_t)row->most;

    switch (row->kind) {
    case INT:
        snprintf(text, size, "a whole number from %" PRIu64 " to %" PRIu64, least, most);
        break;
    case SIZE:
        snprintf(text, size, "bytes from %" PRIu64 " to %" PRIu64 ", with suffix K, M, G or T", least, most);
        break;
    case TIME: /* in milliseconds: printf of a fraction would follow the locale */
        snprintf(text, size, "seconds from %" PRIu64 ".%03" PRIu64 " to %" PRIu64 ", or with suffix us, ms, s, m or h",
                 least, (uint64_t)(row->least * 1000) % 1000, most);
        break;
    case FLAG:
        snprintf(text, size, "0 or 1");
        break;
    case WORD:
        snprintf(text, size, "%s",
                 id == HOOP_SETTING_LOG      ? "error, warn, info or debug"
                 : id == HOOP_SETTING_EFFORT ? "estimate or measure"
                 : id == HOOP_SETTING_DEVICE ? "auto, none, cuda or cuda:N"
                                             : "a text of at most 511 bytes without blanks");
        break;
    }
}

static bool secret(enum hoop_setting_id id)
{
    return id == HOOP_SETTING_ID || id == HOOP_SETTING_SECRET;
}

/* The value as an error text may show it: short, printable, and never a secret. */
static void shown_text(enum hoop_setting_id id, const char *value, char *text, size_t size)
{
    size_t used = 0;

    if (secret(id))
        value = "(not shown: it is secret)";
    for (; value[used] && used + 1 < size; used++)
        text[used] = value[used] >= ' ' && value[used] < 0x7f ? value[used] : '?';
    text[used] = 0;
}

enum hoop_status hoop_setting_parse(enum hoop_setting_id id, const char *text, struct hoop_setting_value *value)
{
    const struct row *row = &table[id];
    struct hoop_setting_value parsed = {.empty = *text == 0};
    const size_t length = strlen(text);
    char allowed[128], shown[64];

    const bool ranged = row->kind != WORD && row->kind != FLAG;
    const bool fits = parsed.empty ? *row->standard == 0
                                   : length < sizeof parsed.word && parse_kind(id, text, &parsed) &&
                                         (!ranged || (parsed.number >= row->least && parsed.number <= row->most));
    if (!fits) {
        allowed_text(id, allowed, sizeof allowed);
        shown_text(id, text, shown, sizeof shown);
        return hoop_fail(HOOP_ERR_SETUP, "%s%s=%s is not allowed: give %s", prefix, row->name, shown, allowed);
    }
    memcpy(parsed.word, text, length + 1);
    *value = parsed;
    return HOOP_OK;
}

/* ---- all from the environment ---- */

/* Edit distance of two names, each cut at 31 characters. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    enum { MOST = 31 };
    size_t row[MOST + 1];

    a_length = a_length < MOST ? a_length : MOST;
    b_length = b_length < MOST ? b_length : MOST;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const size_t change = corner + (a[i - 1] != b[j - 1]);
            const size_t insert = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            corner = row[j];
            row[j] = change < insert ? change : insert;
        }
    }
    return row[b_length];
}

static void warn_unknown(const char *name, size_t length)
{
    const int shown = length < 64 ? (int)length : 64;
    size_t best = SIZE_MAX;
    int nearest = 0;

    for (int i = 0; i < HOOP_SETTINGS; i++) {
        const size_t edits = distance(name, length, table[i].name, strlen(table[i].name));
        if (edits < best) {
            best = edits;
            nearest = i;
        }
    }
    hoop_log(HOOP_LOG_WARN, -1, "%s%.*s in the environment is no setting of hoop and has no effect; did you mean %s%s?",
             prefix, shown, name, prefix, table[nearest].name);
}

static bool known(const char *name, size_t length)
{
    for (int i = 0; i < HOOP_SETTINGS; i++)
        if (strlen(table[i].name) == length && strncmp(table[i].name, name, length) == 0)
            return true;
    return false;
}

static void warn_of_unknown(void)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT; /* once a process: it may make many communicators */

    if (environ == NULL || atomic_flag_test_and_set(&warned))
        return;
    for (char **entry = environ; *entry; entry++) {
        if (strncmp(*entry, prefix, PREFIX) != 0)
            continue;
        const char *name = *entry + PREFIX;
        const size_t length = strcspn(name, "=");
        if (!known(name, length))
            warn_unknown(name, length);
    }
}

const char *hoop_environment(const char *name)
{
    return getenv(name);
}

/* The variable's value, or NULL where it is not set. An empty one counts as not set. */
static const char *from_environment(enum hoop_setting_id id)
{
    char name[64];

    snprintf(name, sizeof name, "%s%s", prefix, table[id].name);
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

enum hoop_status hoop_settings_read(struct hoop_settings *settings)
{
    for (enum hoop_setting_id id = 0; id < HOOP_SETTINGS; id++) {
        const char *text = from_environment(id);
        const enum hoop_status status = hoop_setting_parse(id, text ? text : table[id].standard, &settings->value[id]);
        if (status != HOOP_OK)
            return status;
        settings->value[id].given = text != NULL;
    }
    for (int level = 0; level < (int)(sizeof log_levels / sizeof *log_levels); level++)
        if (strcmp(settings->value[HOOP_SETTING_LOG].word, log_levels[level]) == 0)
            hoop_log_level_set((enum hoop_log_level)level);
    warn_of_unknown();
    return HOOP_OK;
}

/* ---- agreement ---- */

/* "SLOTS=4": the value, not the text that was given, so that 64K and 65536 are the same. */
static void canonical_text(const struct hoop_settings *settings, enum hoop_setting_id id, char *text, size_t size)
{
    const struct hoop_setting_value *value = &settings->value[id];

    if (value->empty || table[id].kind == WORD)
        snprintf(text, size, "%s=%s", table[id].name, value->word);
    else if (table[id].kind == TIME)
        snprintf(text, size, "%s=%" PRIu64 "ns", table[id].name, (uint64_t)(value->number * 1e9 + 0.5));
    else
        snprintf(text, size, "%s=%" PRIu64, table[id].name, value->size);
}

uint64_t hoop_settings_digest(const struct hoop_settings *settings)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    char text[HOOP_SETTING_WORD + 64];

    for (enum hoop_setting_id id = 0; id < HOOP_SETTINGS; id++) {
        if (!table[id].agreed)
            continue;
        canonical_text(settings, id, text, sizeof text);
        for (size_t i = 0; i <= strlen(text); i++)
            hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    }
    return hash;
}

void hoop_settings_agreed_text(const struct hoop_settings *settings, char *text, size_t size)
{
    char item[HOOP_SETTING_WORD + 64];
    size_t used = 0;

    if (size == 0)
        return;
    text[0] = 0;
    for (enum hoop_setting_id id = 0; id < HOOP_SETTINGS && used + 1 < size; id++) {
        if (!table[id].agreed)
            continue;
        canonical_text(settings, id, item, sizeof item);
        snprintf(text + used, size - used, "%s%s", used ? " " : "", item);
        used += strlen(text + used);
    }
}

int hoop_setting_get(int i, struct hoop_setting *setting)
{
    static _Thread_local char value[HOOP_SETTING_WORD];

    if (i < 0 || i >= HOOP_SETTINGS || setting == NULL)
        return 0;
    const char *text = from_environment((enum hoop_setting_id)i);
    snprintf(value, sizeof value, "%s",
             text == NULL                      ? table[i].standard
             : secret((enum hoop_setting_id)i) ? "(secret)"
                                               : text);
    *setting = (struct hoop_setting){.name = table[i].name,
                                     .value = value,
                                     .unit = table[i].unit,
                                     .help = table[i].help,
                                     .origin = text ? "environment" : "default"};
    return 1;
}
