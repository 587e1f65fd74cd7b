/* Sources that read files. The calls in the files are stored in a separate trace, as if they had just been
 * recorded.
 */
#ifndef CT_FILE_SOURCES_H
#define CT_FILE_SOURCES_H

#include "batch.h"

/* All kinds, terminated by NULL. */
extern const struct ct_file_source *const ct_file_sources[];

/* Stores the files in a new database and returns the exit status. On failure, stores all valid data that
 * precedes the error. Calls `say` with a sentence about each problem. */
int ct_file_sources_store(const struct ct_file_source *kind, char *const *paths, size_t count,
                          const char *database, const struct ct_bounds *bounds,
                          void (*say)(const char *sentence));

#endif
