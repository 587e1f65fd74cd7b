/* Finds NVIDIA's tools, and others, that the process was started under. They fail if a recording uses CUPTI,
 * even though some of them do not subscribe to it. */
#ifndef CT_OTHER_TOOL_H
#define CT_OTHER_TOOL_H

#include "gpu_host.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns whether there is such a tool, and writes its name to `tool`. */
bool ct_other_tool_find(const struct ct_gpu_host *host, char *tool, size_t bytes);

#endif
