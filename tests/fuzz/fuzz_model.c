// SPDX-License-Identifier: BSD-3-Clause
/* The reader of model files: any bytes are read or refused; what is read is in range, and prints to a text that reads as
 * the same constants. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hoop/plan.h"
#include "plan/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hoop_model model, again;
    char *text = NULL;
    size_t size;

    if (hoop_model_parse(&model, (const char *)data, bytes) != HOOP_OK)
        return 0;
    check(hoop_model_valid(&model));
    FILE *file = open_memstream(&text, &size);
    check(file != NULL && hoop_model_print(&model, file) == HOOP_OK && fclose(file) == 0);
    check(hoop_model_parse(&again, text, size) == HOOP_OK);
    for (int i = 0; i < HOOP_MODEL_CONSTANTS; i++)
        check(hoop_model_get(&model, i) == hoop_model_get(&again, i));
    free(text);
    return 0;
}
