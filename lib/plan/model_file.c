// SPDX-License-Identifier: BSD-3-Clause
/* Model files on disk: read, written, and the one of this machine found. Their text is model.c's. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/settings.h"
#include "base/status.h"
#include "plan/machine.h"
#include "plan/model.h"

static enum hoop_status parse(struct hoop_model *model, const char *path, const char *text, size_t size)
{
    char why[256];

    if (hoop_model_parse(model, text, size) == HOOP_OK)
        return HOOP_OK;
    snprintf(why, sizeof why, "%s", hoop_error_text());
    return hoop_fail(HOOP_ERR_SETUP, "model file %s: %s", path, why);
}

enum hoop_status hoop_model_load(struct hoop_model *model, const char *path)
{
    char *text;
    size_t size;

    enum hoop_status status = hoop_file_read("model file", path, HOOP_MODEL_FILE, &text, &size, NULL);
    if (status == HOOP_OK)
        status = parse(model, path, text, size);
    hoop_free(text);
    return status;
}

enum hoop_status hoop_model_save(const struct hoop_model *model, const char *path, const char *remarks)
{
    char machine[HOOP_MACHINE_TEXT], *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL)
        return hoop_fail_errno(HOOP_ERR_MEMORY, "no memory for the text of a model");
    enum hoop_status status = hoop_model_print(model, file);
    hoop_machine_text(machine, sizeof machine);
    fprintf(file, "# %s\n%s", machine, remarks ? remarks : "");
    if (fclose(file) != 0 && status == HOOP_OK)
        status = hoop_fail_errno(HOOP_ERR_MEMORY, "no memory for the text of a model");
    if (status == HOOP_OK)
        status = hoop_file_replace("model file", path, text, size);
    free(text); /* the C library's */
    return status;
}

enum hoop_status hoop_model_path(char *path, size_t size)
{
    char whole[HOOP_MACHINE_PATH];

    const enum hoop_status status = hoop_machine_path("model", whole);
    if (status != HOOP_OK)
        return status;
    if ((size_t)snprintf(path, size, "%s", whole) >= size)
        return hoop_fail(HOOP_ERR_SETUP, "a path of %zu bytes is too short for %s", size, whole);
    return HOOP_OK;
}

static enum hoop_status choose_own(struct hoop_model *model, char *origin, size_t size)
{
    char path[HOOP_MACHINE_PATH], *text = NULL;
    size_t bytes;
    bool missing = false;

    enum hoop_status status = hoop_machine_path("model", path);
    if (status == HOOP_OK)
        status = hoop_file_read("model file", path, HOOP_MODEL_FILE, &text, &bytes, &missing);
    if (status == HOOP_OK && !missing)
        status = parse(model, path, text, bytes);
    hoop_free(text);
    if (origin)
        snprintf(origin, size, missing ? "built in, since there is no %s" : "%s", path);
    return status;
}

enum hoop_status hoop_model_choose(struct hoop_model *model, const char *word, char *origin, size_t size)
{
    *model = hoop_model_builtin();
    if (origin)
        snprintf(origin, size, "%s", *word ? word : "built in");
    if (*word == 0)
        return HOOP_OK;
    return strcmp(word, "auto") == 0 ? choose_own(model, origin, size) : hoop_model_load(model, word);
}

enum hoop_status hoop_model_current(struct hoop_model *model, char *origin, size_t size)
{
    struct hoop_settings settings;

    const enum hoop_status status = hoop_settings_read(&settings);
    return status == HOOP_OK ? hoop_model_choose(model, settings.value[HOOP_SETTING_MODEL].word, origin, size) : status;
}
