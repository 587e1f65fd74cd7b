/* Prints the samples of GPUs for the page of `cudatrace html`. */
#ifndef CT_HTML_GPUS_H
#define CT_HTML_GPUS_H

#include "export_format.h"

/* Prints the member "gpus" of the page's JSON object, after a comma. It has an object for each GPU, with the
 * names of the GPU and of its counters, and a bounded number of points. A point has the time in ns since the
 * trace began, and the mean of each counter since the previous point, or null. Returns false if SQLite
 * failed. */
bool ct_html_print_gpus(const struct ct_export *to);

#endif
