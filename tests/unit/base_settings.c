// SPDX-License-Identifier: BSD-3-Clause
/* Settings: what is accepted and what it means, what is refused and how that is said, and what ranks compare. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/settings.h"
#include "base/status.h"
#include "harness.h"

#define ID(name) HOOP_SETTING_##name

START_TEST(accepted_values)
{
    static const struct {
        enum hoop_setting_id id;
        const char *text;
        double number;
    } cases[] = {
        {ID(SLOTS), "2", 2},
        {ID(SLOTS), "64", 64},
        {ID(SLOTS), "007", 7},
        {ID(SLICE), "4096", 4096},
        {ID(SLICE), "64K", 65536},
        {ID(SLICE), "64k", 65536},
        {ID(SLICE), "16M", 16777216},
        {ID(HEAP), "1G", 1073741824.0},
        {ID(HEAP), "16T", 17592186044416.0},
        {ID(INIT_TIMEOUT), "0.1", 0.1},
        {ID(INIT_TIMEOUT), "2.50", 2.5},
        {ID(INIT_TIMEOUT), "90", 90},
        {ID(INIT_TIMEOUT), "250ms", 0.25},
        {ID(INIT_TIMEOUT), "1.5m", 90},
        {ID(INIT_TIMEOUT), "24h", 86400},
        {ID(SPIN), "20us", 20e-6},
        {ID(SPIN), "1s", 1},
        {ID(SPIN), "0", 0},
    };
    struct hoop_setting_value value;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(hoop_setting_parse(cases[i].id, cases[i].text, &value) == HOOP_OK, "%s: %s", cases[i].text,
                      hoop_error_text());
        ck_assert_msg(fabs(value.number - cases[i].number) <= 1e-12 * cases[i].number, "%s: %g", cases[i].text,
                      value.number);
        if (cases[i].id == ID(SLOTS) || cases[i].id == ID(SLICE) || cases[i].id == ID(HEAP))
            ck_assert_uint_eq(value.size, (uint64_t)cases[i].number);
        ck_assert_str_eq(value.word, cases[i].text);
    }
    ck_assert_int_eq(hoop_setting_parse(ID(ALGO), "ring", &value), HOOP_OK);
    ck_assert_int_eq(hoop_setting_parse(ID(LOG), "debug", &value), HOOP_OK);
    ck_assert_int_eq(hoop_setting_parse(ID(RANK), "", &value), HOOP_OK);
    ck_assert(value.empty);
}
END_TEST

START_TEST(refused_values)
{
    static const struct {
        enum hoop_setting_id id;
        const char *text, *allowed;
    } cases[] = {
        {ID(SLOTS), "1", "from 2 to 64"},
        {ID(SLOTS), "65", "from 2 to 64"},
        {ID(SLOTS), "-4", "from 2 to 64"},
        {ID(SLOTS), "+4", "from 2 to 64"},
        {ID(SLOTS), "4.0", "whole number"},
        {ID(SLOTS), "4K", "whole number"},
        {ID(SLOTS), " 4", "whole number"},
        {ID(SLOTS), "0x4", "whole number"},
        {ID(SLOTS), "four", "whole number"},
        {ID(SLOTS), "", "whole number"},
        {ID(SLOTS), "18446744073709551620", "whole number"}, /* 4 modulo 2^64 */
        {ID(SLICE), "4095", "from 4096 to 16777216"},
        {ID(SLICE), "17M", "from 4096 to 16777216"},
        {ID(SLICE), "64KB", "suffix K, M, G or T"},
        {ID(SLICE), "1.5M", "suffix K, M, G or T"},
        {ID(SLICE), "K", "suffix K, M, G or T"},
        {ID(HEAP), "16777217T", "suffix K, M, G or T"}, /* 2^40 modulo 2^64 */
        {ID(INIT_TIMEOUT), "0.05", "from 0.100 to 86400"},
        {ID(INIT_TIMEOUT), "25h", "from 0.100 to 86400"},
        {ID(INIT_TIMEOUT), "1,5", "us, ms, s, m or h"},
        {ID(INIT_TIMEOUT), "1.", "us, ms, s, m or h"},
        {ID(INIT_TIMEOUT), ".5", "us, ms, s, m or h"},
        {ID(INIT_TIMEOUT), "1e3", "us, ms, s, m or h"},
        {ID(INIT_TIMEOUT), "inf", "us, ms, s, m or h"},
        {ID(INIT_TIMEOUT), "5 s", "us, ms, s, m or h"},
        {ID(ALGO), "ring tree", "without blanks"},
        {ID(ALGO), "ring\n", "without blanks"},
        {ID(LOG), "loud", "error, warn, info or debug"},
    };
    struct hoop_setting_value value = {.number = 77};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(hoop_setting_parse(cases[i].id, cases[i].text, &value) == HOOP_ERR_SETUP, "'%s'", cases[i].text);
        ck_assert_msg(strstr(hoop_error_text(), cases[i].allowed) != NULL, "'%s': %s", cases[i].text,
                      hoop_error_text());
        ck_assert(value.number == 77);
    }
    char long_word[600];
    memset(long_word, 'a', sizeof long_word);
    long_word[HOOP_SETTING_WORD] = 0;
    ck_assert_int_eq(hoop_setting_parse(ID(ALGO), long_word, &value), HOOP_ERR_SETUP);
    long_word[HOOP_SETTING_WORD - 1] = 0;
    ck_assert_int_eq(hoop_setting_parse(ID(ALGO), long_word, &value), HOOP_OK);
}
END_TEST

START_TEST(errors_name_variable_and_value_but_no_secret)
{
    struct hoop_settings settings;

    setenv("HOOP_SLOTS", "many\033[2J", 1);
    ck_assert_int_eq(hoop_settings_read(&settings), HOOP_ERR_SETUP);
    ck_assert_str_eq(hoop_error_text(), "HOOP_SLOTS=many?[2J is not allowed: give a whole number from 2 to 64");
    unsetenv("HOOP_SLOTS");
    setenv("HOOP_ID", "hoop1:s3cr et", 1);
    ck_assert_int_eq(hoop_settings_read(&settings), HOOP_ERR_SETUP);
    ck_assert_ptr_null(strstr(hoop_error_text(), "s3cr"));
    ck_assert_ptr_nonnull(strstr(hoop_error_text(), "HOOP_ID"));
}
END_TEST

START_TEST(defaults_are_allowed_values)
{
    struct hoop_settings settings;

    ck_assert_msg(hoop_settings_read(&settings) == HOOP_OK, "%s", hoop_error_text());
    ck_assert_uint_eq(hoop_setting_size(&settings, ID(SLOTS)), 4);
    ck_assert_uint_eq(hoop_setting_size(&settings, ID(FLAT_MAX)), 4096);
    ck_assert(hoop_setting_number(&settings, ID(SPIN)) == 20 * 1e-6);
    ck_assert(settings.value[ID(RANK)].empty && !settings.value[ID(SLOTS)].empty && !settings.value[ID(SLOTS)].given);
    setenv("HOOP_SLOTS", "8", 1);
    setenv("HOOP_CHANNELS", "", 1); /* empty: as if not set */
    ck_assert_int_eq(hoop_settings_read(&settings), HOOP_OK);
    ck_assert(settings.value[ID(SLOTS)].given && settings.value[ID(SLOTS)].size == 8);
    ck_assert(!settings.value[ID(CHANNELS)].given && settings.value[ID(CHANNELS)].empty);
}
END_TEST

/* Read the settings with standard error going to a pipe; text receives what was written. */
static void read_catching(char *text, size_t size)
{
    struct hoop_settings settings;
    int ends[2];
    const int kept = dup(STDERR_FILENO);

    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    const enum hoop_status status = hoop_settings_read(&settings);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    const ssize_t got = read(ends[0], text, size - 1);
    text[got > 0 ? got : 0] = 0;
    close(ends[0]);
    ck_assert_int_eq(status, HOOP_OK);
}

START_TEST(unknown_variables_warn_once_with_the_nearest_name)
{
    char text[2048];

    setenv("HOOP_CHANELS", "2", 1);
    setenv("HOOPLA", "2", 1);
    read_catching(text, sizeof text);
    ck_assert_msg(strstr(text, "HOOP_CHANELS ") && strstr(text, "did you mean HOOP_CHANNELS?"), "%s", text);
    ck_assert_msg(strstr(text, "HOOPLA") == NULL, "%s", text);
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1); /* one line */
    read_catching(text, sizeof text);
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(log_level_is_taken)
{
    char text[2048];

    setenv("HOOP_LOG", "error", 1);
    setenv("HOOP_UNKNOWN", "1", 1);
    read_catching(text, sizeof text);
    ck_assert_str_eq(text, ""); /* the warning lies above the level */
}
END_TEST

START_TEST(digest_compares_values_of_agreed_settings_only)
{
    struct hoop_settings plain, same, other;
    char text[256], other_text[256], cut[10];

    ck_assert_int_eq(hoop_settings_read(&plain), HOOP_OK);
    setenv("HOOP_FLAT_MAX", "4096", 1); /* the default is written 4K */
    setenv("HOOP_TIMEOUT", "5", 1);     /* not agreed */
    ck_assert_int_eq(hoop_settings_read(&same), HOOP_OK);
    setenv("HOOP_SLOTS", "5", 1);
    ck_assert_int_eq(hoop_settings_read(&other), HOOP_OK);
    ck_assert_uint_eq(hoop_settings_digest(&plain), hoop_settings_digest(&same));
    ck_assert_uint_ne(hoop_settings_digest(&plain), hoop_settings_digest(&other));
    hoop_settings_agreed_text(&plain, text, sizeof text);
    hoop_settings_agreed_text(&other, other_text, sizeof other_text);
    ck_assert_ptr_nonnull(strstr(text, " CHANNELS= SLICE= RENO=1 SLOTS=4 "));
    ck_assert_ptr_nonnull(strstr(other_text, " SLOTS=5 "));
    ck_assert_ptr_null(strstr(text, "TIMEOUT"));
    hoop_settings_agreed_text(&plain, cut, sizeof cut);
    ck_assert_str_eq(cut, "ALGO=auto");
}
END_TEST

START_TEST(listing_tells_values_and_origins)
{
    struct hoop_setting setting;
    int count = 0, given = 0;

    setenv("HOOP_SLOTS", "16", 1);
    setenv("HOOP_ID", "hoop1:secret", 1);
    for (int i = 0; hoop_setting_get(i, &setting); i++, count++) {
        ck_assert(*setting.name && *setting.help);
        ck_assert_ptr_null(strstr(setting.value, "hoop1"));
        if (strcmp(setting.origin, "environment") == 0)
            given++;
        else
            ck_assert_str_eq(setting.origin, "default");
        if (strcmp(setting.name, "SLOTS") == 0)
            ck_assert_str_eq(setting.value, "16");
        if (strcmp(setting.name, "FLAT_MAX") == 0)
            ck_assert_str_eq(setting.value, "4K");
    }
    ck_assert_int_eq(count, HOOP_SETTINGS);
    ck_assert_int_eq(given, 2);
    ck_assert(!hoop_setting_get(-1, &setting) && !hoop_setting_get(HOOP_SETTINGS, &setting));
}
END_TEST

static void clear_environment(void)
{
    clearenv();
}

int main(void)
{
    Suite *suite = suite_create("base/settings");
    TCase *tests = tcase_create("settings");

    tcase_add_checked_fixture(tests, clear_environment, NULL);
    tcase_add_test(tests, accepted_values);
    tcase_add_test(tests, refused_values);
    tcase_add_test(tests, errors_name_variable_and_value_but_no_secret);
    tcase_add_test(tests, defaults_are_allowed_values);
    tcase_add_test(tests, unknown_variables_warn_once_with_the_nearest_name);
    tcase_add_test(tests, log_level_is_taken);
    tcase_add_test(tests, digest_compares_values_of_agreed_settings_only);
    tcase_add_test(tests, listing_tells_values_and_origins);
    suite_add_tcase(suite, tests);
    return harness_suite(suite);
}
