// SPDX-License-Identifier: BSD-3-Clause
/* Monitor: one helper thread per process that shows that the process lives and notices that others do not.
 *
 * Three witnesses, the fastest first:
 * - a robust mutex in each rank's card, held by its monitor thread. The kernel marks it when the process dies, before it
 *   tears the process's memory down, and no forked child holds it up. Anyone who waits looks at the marks.
 * - the lifeline, a Unix socket between each rank and the host's leader: its end shows also a death during set-up.
 * - the heartbeat, a counter that the monitor thread moves on: it stands still when the process is stopped. A peer is
 *   judged by the ticks of the own thread, so a machine that was suspended as a whole judges nobody.
 *
 * A long computation is no reason for a verdict, since the heartbeat comes from the helper thread.
 */
#ifndef HOOP_HEALTH_MONITOR_H
#define HOOP_HEALTH_MONITOR_H

#include "health/far.h"

struct hoop_watch;

/* Begin to watch, and be seen alive by the others from now on.
 *
 * lifeline     ranks descriptors of lifelines, -1 where there is none; taken over on success.
 * silent       seconds without a sign of life after which a peer counts as dead.
 * far          what joins this host with others, if this rank speaks for it; NULL: nothing. The watch uses it, and its domain, until it is
 *              stopped.
 * Errors: HOOP_ERR_MEMORY, HOOP_ERR_SYSTEM (no thread). */
enum hoop_status hoop_watch_start(struct hoop_watch **watch, struct hoop_board *board, const int *lifeline,
                                  double silent, struct hoop_far *far);

/* Wait until every other host that is joined with this one has been heard: from then on the end of a rank there shows. Also returns when one
 * of them has been lost, or a verdict stands. NULL, or a watch without such: at once.
 *
 * cancel       descriptor: give up when it is readable.
 * Errors: HOOP_ERR_ABORTED (cancel), HOOP_ERR_TIMEOUT. */
enum hoop_status hoop_watch_await(struct hoop_watch *watch, int cancel, uint64_t deadline);

/* Tell other hosts the verdict that stands, now: this rank's process may end next. NULL is allowed. Never blocks for long. */
void hoop_watch_spread(struct hoop_watch *watch);

/* From here on this rank's process may end in peace. NULL is allowed. */
void hoop_watch_rest(struct hoop_watch *watch);

/* End: the others see that this rank left in peace. Closes the lifelines. NULL is allowed. */
void hoop_watch_stop(struct hoop_watch *watch);

/* Look once for dead peers, and pass a verdict if there is one. `sequence`: the call that waits, 0 if none; then a peer that left
 * before it made that call is a culprit too. Any thread; a few hundred nanoseconds. */
void hoop_health_look(struct hoop_board *board, uint64_t sequence);

/* Has that rank's process died, or left the communicator? Any thread; below a hundred nanoseconds. */
bool hoop_health_gone(const struct hoop_board *board, int rank);

#endif
