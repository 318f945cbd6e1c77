// SPDX-License-Identifier: BSD-3-Clause
/* Small text files that the library keeps between runs: read whole, replaced whole. */
#ifndef HOOP_BASE_FILE_H
#define HOOP_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Read a file of at most `most` bytes.
 *
 * what   names it in errors, such as "model file".
 * text   receives its bytes, freed with hoop_free, and a NUL behind them; NULL if there is no such file and `missing` is given.
 * size   receives their number.
 * missing   NULL: a missing file is an error; else receives whether it was missing.
 * Blocking: on the file.   Errors: HOOP_ERR_SETUP (cannot be opened or read, or is longer), HOOP_ERR_MEMORY. */
enum hoop_status hoop_file_read(const char *what, const char *path, size_t most, char **text, size_t *size,
                                bool *missing);

/* Put a file in place of what was there, in one step: readers find the old or the new one. Makes the folder that it lies in, and
 * that one's, if they are missing, for the user alone.
 * Blocking: on the file.   Errors: HOOP_ERR_SYSTEM (names file or folder). */
enum hoop_status hoop_file_replace(const char *what, const char *path, const char *text, size_t size);

/* "/home/u/.cache/hoop/NAME": where files of the user that can be made anew are kept, $XDG_CACHE_HOME or $HOME/.cache.
 * Errors: HOOP_ERR_SETUP (neither variable holds an absolute path, or the path is longer than size). */
enum hoop_status hoop_file_cache_path(const char *name, char *path, size_t size);

#endif
