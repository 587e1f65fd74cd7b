/* Finds the work that the GPUs have not finished, for running processes. Called by top_sample.c. */
#ifndef CT_TOP_PENDING_H
#define CT_TOP_PENDING_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* Updates the table `pending` in the database `moments` for a sample of the trace that was taken at `at_ns`
 * (CLOCK_MONOTONIC). If the trace was written by a version without the view gpu_pending, the table stays
 * empty. Returns false if a statement on `moments` has failed. */
bool ct_top_pending_look(sqlite3 *trace, sqlite3 *moments, int64_t at_ns);

#endif
