/* Stops all threads of another process at once, so that the process's code can be overwritten. Like
 * everything that stops threads, this must be called inside ct_tracer_run(). */
#ifndef CT_ATTACH_FREEZE_H
#define CT_ATTACH_FREEZE_H

#include "stop.h"

struct ct_freeze {
    const struct ct_memory *memory;
    struct ct_stop *threads; /* is_gone is set for threads that have exited */
    size_t count, room;
    bool *is_listed; /* for each thread: the last listing of the process's threads contains it */
    uint64_t began_ns, took_ns;
};

/* Returns 0 or -errno: -ETIMEDOUT if a thread did not stop within `patience_ns`, -ESRCH if no thread is left,
 * or -EPERM. After an error, no thread remains stopped. */
int ct_freeze_begin(struct ct_freeze *freeze, const struct ct_memory *memory, uint64_t patience_ns);
void ct_freeze_end(struct ct_freeze *freeze);

#endif
