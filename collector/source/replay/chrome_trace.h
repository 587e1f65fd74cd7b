/* A trace in the Trace Event Format of Chrome, as `cudatrace export --format chrome`, PyTorch's profiler and
 * others write it, made into JSON lines (json_lines.h), by which it is stored.
 *
 * Calls are the events of the categories that cudatrace and PyTorch have for them. Other events of a thread
 * become ranges and marks. Of kernels, launches get the name and shape. What the GPU did, counters, arrows
 * and names are left out: no table has them. */
#ifndef CT_CHROME_TRACE_H
#define CT_CHROME_TRACE_H

#include <stdint.h>

/* Returns a descriptor of the lines; or -1 with the rest of a sentence in *why. Where *why is set besides,
 * the trace ends too early. `fd` stays the caller's, and is read from byte `from` on. */
int ct_chrome_lines(int fd, int64_t from, const char **why);

#endif
