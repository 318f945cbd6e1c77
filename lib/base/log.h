// SPDX-License-Identifier: BSD-3-Clause
/* Log lines on standard error: "hoop: rank 3: text". One event a line; never on the hot path. */
#ifndef HOOP_BASE_LOG_H
#define HOOP_BASE_LOG_H

enum hoop_log_level { HOOP_LOG_ERROR, HOOP_LOG_WARN, HOOP_LOG_INFO, HOOP_LOG_DEBUG };

/* Lines above the level are dropped; default HOOP_LOG_WARN. Set once at init from the setting LOG. */
void hoop_log_level_set(enum hoop_log_level level);

/* rank < 0: no rank in the line. */
void hoop_log(enum hoop_log_level level, int rank, const char *format, ...) __attribute__((format(printf, 3, 4), cold));

#endif
