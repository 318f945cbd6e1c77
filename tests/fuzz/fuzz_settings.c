// SPDX-License-Identifier: BSD-3-Clause
/* Setting values: the first byte chooses the setting, the others are its text. It is refused with an error text, or its
 * value agrees with the canonical form that ranks compare. */
#include <stdlib.h>
#include <string.h>

#include "base/settings.h"
#include "base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct hoop_settings settings;
    char small[8], large[1024];

    if (bytes == 0)
        return 0;
    const enum hoop_setting_id id = (enum hoop_setting_id)(data[0] % HOOP_SETTINGS);
    char *text = calloc(bytes, 1);
    memcpy(text, data + 1, bytes - 1);
    struct hoop_setting_value value = {0};
    if (hoop_setting_parse(id, text, &value) == HOOP_OK) {
        if (strcmp(value.word, text) != 0 || !(value.number >= 0))
            abort();
        settings.value[id] = value;
        hoop_settings_agreed_text(&settings, small, sizeof small);
        hoop_settings_agreed_text(&settings, large, sizeof large);
        if (strlen(small) >= sizeof small || strncmp(small, large, strlen(small)) != 0)
            abort();
        (void)hoop_settings_digest(&settings);
    } else if (*hoop_error_text() == 0) {
        abort();
    }
    free(text);
    return 0;
}
