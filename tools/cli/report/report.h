/* The sections of `cudatrace report`, for the page of `cudatrace html`. */
#ifndef CT_REPORT_H
#define CT_REPORT_H

#include "scope.h"
#include "sections.h"

/* Runs all sections, as JSON, over the calls in the scope. The caller finishes them. May be called once per
 * process. */
struct ct_section *ct_report_sections(sqlite3 *connection, const struct ct_scope *scope, size_t *count);

#endif
