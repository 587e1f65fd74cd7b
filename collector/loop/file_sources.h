/* Sources that are files: stored in a trace of their own, as if what they tell of happened. */
#ifndef CT_FILE_SOURCES_H
#define CT_FILE_SOURCES_H

#include "batch.h"

/* All kinds, up to NULL. */
extern const struct ct_file_source *const ct_file_sources[];

/* Stores the files in a new database. The exit status; what went wrong is a sentence in `message`: what was
 * whole before it is stored. */
int ct_file_sources_store(const struct ct_file_source *kind, char *const *paths, size_t count,
                          const char *database, const struct ct_bounds *bounds,
                          char message[CT_MESSAGE_BYTES]);

#endif
