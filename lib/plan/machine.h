// SPDX-License-Identifier: BSD-3-Clause
/* Which machine is this, as far as measured figures go? */
#ifndef HOOP_PLAN_MACHINE_H
#define HOOP_PLAN_MACHINE_H

#include "hoop/plan.h"

enum { HOOP_MACHINE_TEXT = 256, HOOP_MACHINE_PATH = 512 };

/* The cache path of this machine's file of a kind, such as "model": its name ends in a hash of hoop_machine_text.
 * Errors: HOOP_ERR_SETUP (no home). */
enum hoop_status hoop_machine_path(const char *kind, char path[HOOP_MACHINE_PATH]);

#endif
