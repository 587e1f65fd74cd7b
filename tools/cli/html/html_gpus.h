/* Prints GPU samples for the page written by `cudatrace html`. */
#ifndef CT_HTML_GPUS_H
#define CT_HTML_GPUS_H

#include "export_format.h"

/* Prints the member "gpus" of the page's JSON object, after a comma. It holds an object for each GPU, with
 * the names of the GPU and of its counters, and a bounded number of points. A point consists of the time in
 * ns since the trace began, and each counter's mean since the previous point, or null. Returns false if
 * SQLite failed. */
bool ct_html_print_gpus(const struct ct_export *to);

#endif
