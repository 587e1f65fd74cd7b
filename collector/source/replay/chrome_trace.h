/* Converts a trace in Chrome's Trace Event Format to JSON lines (json_lines.h) for storing. `cudatrace export
 * --format chrome`, PyTorch's profiler and others write this format.
 *
 * Events in the categories that cudatrace and PyTorch use for calls become calls. A thread's other events
 * become ranges and marks. Launches are stored with the kernel's name and launch dimensions. GPU activity,
 * counters, flow arrows and names are skipped, because there are no tables for them. */
#ifndef CT_CHROME_TRACE_H
#define CT_CHROME_TRACE_H

#include "dropped.h"

/* Returns a descriptor for reading the lines, or -1 with the rest of a sentence in `why`. If a descriptor is
 * returned and `why` is not empty, the trace ends early. Events that cannot be stored are counted in
 * `dropped`. `fd` is read from byte `from` on, and stays open. */
int ct_chrome_lines(int fd, int64_t from, struct ct_dropped *dropped, char *why, size_t bytes);

#endif
