/* The sections of `cudatrace report`, for a page. */
#ifndef CT_REPORT_H
#define CT_REPORT_H

#include "scope.h"
#include "sections.h"

/* Runs all of them, as JSON, over what is in the scope; the caller finishes them. Once a process. */
struct ct_section *ct_report_sections(sqlite3 *connection, const struct ct_scope *scope, size_t *count);

#endif
