/* The process that runs a writer (writer.h). */
#ifndef CT_PROBE_WRITER_PROCESS_H
#define CT_PROBE_WRITER_PROCESS_H

#include "writer.h"

#include <stdbool.h>
#include <sys/types.h>

/* Starts a writer, and sets its process ID and the probe's end of the link to it (writer_link.h). `is_found`:
 * the BPF programs have found the process, and the writer must examine it first. If the hook records the
 * process, the writer sends CT_LINK_HOOK and ends. Returns 0 or -errno. */
int ct_writer_process_start(struct ct_writer_plan *plan, bool is_found, pid_t *pid, int *link);

#endif
