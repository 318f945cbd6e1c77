// SPDX-License-Identifier: BSD-3-Clause
/* JSON output shared by the programs. */
#ifndef HOOP_TOOLS_JSON_H
#define HOOP_TOOLS_JSON_H

#include <stdio.h>

/* The text as a JSON string with its quotes. Bytes above 0x7f are passed on: texts are UTF-8. */
void hoop_json_string(FILE *out, const char *text);

#endif
