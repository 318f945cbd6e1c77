// SPDX-License-Identifier: BSD-3-Clause
/* SIGINT and SIGTERM ask for a stop. The training loop tells the other ranks through its control word, so all stop
 * after the same step. A second signal of the same kind ends the process at once, as it does by default. */
#ifndef TRAINER_SIGNALS_H
#define TRAINER_SIGNALS_H

void signals_catch(void);

/* SIGINT, SIGTERM, or 0: what arrived. */
int signals_pending(void);

#endif
