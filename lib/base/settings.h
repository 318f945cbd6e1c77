// SPDX-License-Identifier: BSD-3-Clause
/* Settings: settings.def as values, read from the environment once. */
#ifndef HOOP_BASE_SETTINGS_H
#define HOOP_BASE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hoop.h"

enum { HOOP_SETTING_WORD = 512 }; /* bytes of a WORD value, with NUL */

enum hoop_setting_id {
#define SETTING(name, kind, standard, unit, least, most, help) HOOP_SETTING_##name,
#define AGREED                                                 SETTING
#include "base/settings.def"
#undef AGREED
#undef SETTING
    HOOP_SETTINGS
};

struct hoop_setting_value {
    bool given;                   /* from the environment, not the default */
    bool empty;                   /* has no value: the default is none */
    double number;                /* INT, FLAG, TIME (seconds) */
    uint64_t size;                /* SIZE, INT */
    char word[HOOP_SETTING_WORD]; /* the text as given */
};

struct hoop_settings {
    struct hoop_setting_value value[HOOP_SETTINGS];
};

/* Read all from the environment.
 * Errors: HOOP_ERR_SETUP (names variable, value and what is allowed). An unknown HOOP_ variable is only a warning with the nearest name. */
enum hoop_status hoop_settings_read(struct hoop_settings *settings);

/* Parse one value; the error names the setting and what is allowed. For tests and the fuzzer. */
enum hoop_status hoop_setting_parse(enum hoop_setting_id id, const char *text, struct hoop_setting_value *value);

/* A digest of the AGREED settings; equal on all ranks or init fails. */
uint64_t hoop_settings_digest(const struct hoop_settings *settings);

/* "ALGO=ring SLOTS=4 …": the AGREED settings as text, to show a difference. Cut off at size. */
void hoop_settings_agreed_text(const struct hoop_settings *settings, char *text, size_t size);

/* A variable of the environment that is no setting of ours, or NULL. Only while a communicator is made. */
const char *hoop_environment(const char *name);

static inline double hoop_setting_number(const struct hoop_settings *settings, enum hoop_setting_id id)
{
    return settings->value[id].number;
}

static inline size_t hoop_setting_size(const struct hoop_settings *settings, enum hoop_setting_id id)
{
    return settings->value[id].size;
}

#endif
