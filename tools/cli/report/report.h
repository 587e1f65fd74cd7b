/* Runs the sections of `cudatrace report` for the page written by `cudatrace html`. */
#ifndef CT_REPORT_H
#define CT_REPORT_H

#include "scope.h"
#include "sections.h"
#include "series.h"

struct ct_page_sections;

/* Begins to run the sections over the calls in the scope, with JSON as their format. They run in a thread,
 * with a connection of its own, and see the same state of the trace as the given connection, which is in a
 * transaction. If the daemon has committed since then, they are run by ct_page_sections_wait(). A section
 * that only repeats what others show is not run, and is not `wanted`. May be called only once per process.
 * Returns NULL if out of memory. */
struct ct_page_sections *ct_page_sections_begin(const struct ct_series *series, sqlite3 *connection,
                                                const struct ct_scope *scope);
/* Returns the sections when all have been run. They belong to `page`. May be called only once. */
struct ct_section *ct_page_sections_wait(struct ct_page_sections *page, size_t *count);
/* Ends sections that still run. NULL is ignored. */
void ct_page_sections_finish(struct ct_page_sections *page);

#endif
