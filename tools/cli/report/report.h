/* Runs the sections of `cudatrace report` for the page written by `cudatrace html`. */
#ifndef CT_REPORT_H
#define CT_REPORT_H

#include "scope.h"
#include "sections.h"

/* Runs the sections over the calls in the scope, with JSON as their format. A section that only repeats what
 * others show is not run, and is not `wanted`. The caller finishes the sections. May be called only once per
 * process. */
struct ct_section *ct_report_sections(sqlite3 *connection, const struct ct_scope *scope, size_t *count);

#endif
