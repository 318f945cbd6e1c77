// SPDX-License-Identifier: BSD-3-Clause
/* The reader of wisdom files: any bytes are read or refused; what is read prints to a text that reads as the same lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/wisdom.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hoop_wisdom wisdom = {NULL, 0, 0}, again = {NULL, 0, 0};
    char *text = NULL;
    size_t size;

    if (hoop_wisdom_parse(&wisdom, (const char *)data, bytes) == HOOP_OK) {
        FILE *file = open_memstream(&text, &size);
        check(file != NULL && hoop_wisdom_print(&wisdom, file) == HOOP_OK && fclose(file) == 0);
        check(hoop_wisdom_parse(&again, text, size) == HOOP_OK && again.lines == wisdom.lines);
        for (size_t i = 0; i < wisdom.lines; i++)
            check(wisdom.line[i].algo == again.line[i].algo && wisdom.line[i].ns == again.line[i].ns &&
                  wisdom.line[i].size == again.line[i].size && wisdom.line[i].ranks == again.line[i].ranks &&
                  strcmp(wisdom.line[i].groups, again.line[i].groups) == 0);
        free(text);
        hoop_wisdom_free(&again);
    }
    hoop_wisdom_free(&wisdom);
    return 0;
}
