/* Finds the work that the GPUs of running processes do not finish. Called by top_sample.c. */
#ifndef CT_TOP_PENDING_H
#define CT_TOP_PENDING_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* Updates the table pending of the database `moments` for a sample of the trace at `at_ns`, in
 * CLOCK_MONOTONIC. A trace of a version without the view gpu_pending leaves the table empty. Returns false if
 * a statement on `moments` has failed. */
bool ct_top_pending_look(sqlite3 *trace, sqlite3 *moments, int64_t at_ns);

#endif
