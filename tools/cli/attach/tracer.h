/* The tracer that stops threads of another process (stop.h). When the tracer exits, the kernel releases
 * the threads. */
#ifndef CT_ATTACH_TRACER_H
#define CT_ATTACH_TRACER_H

#include <stddef.h>

/* Runs `act` in a separate process, which continues if this one ends. If a separate process may not trace,
 * runs `act` in a thread. Only the `bytes` of `data` are copied to it and back. Returns the result of `act`,
 * -errno if neither a process nor a thread could be started, or -ECANCELED if the process was killed. */
int ct_tracer_run(int (*act)(void *data), void *data, size_t bytes);

#endif
