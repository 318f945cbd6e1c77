// SPDX-License-Identifier: BSD-3-Clause
/* Words of the text form, for error texts. */
#ifndef HOOP_PLAN_TEXT_H
#define HOOP_PLAN_TEXT_H

#include "hoop/plan.h"

enum { HOOP_STEP_TEXT = 96 }; /* bytes that hold any step's text with its NUL */

/* One step as in the text form, such as "recv_reduce 0 out 3 in 3 forward". Any step is safe to give. */
void hoop_step_text(const struct hoop_step *step, char text[static HOOP_STEP_TEXT]);

/* "in", "out", "tmp", or "?". */
const char *hoop_buffer_name(unsigned buffer);

#endif
