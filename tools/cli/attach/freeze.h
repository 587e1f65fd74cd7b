/* Stops all threads of another process at the same time, so that its code can be written. Like every stop,
 * this happens inside ct_tracer_run(). */
#ifndef CT_ATTACH_FREEZE_H
#define CT_ATTACH_FREEZE_H

#include "stop.h"

struct ct_freeze {
    const struct ct_memory *memory;
    struct ct_stop *threads; /* those that have ended have is_gone set */
    size_t count, room;
    uint64_t began_ns, took_ns;
};

/* Returns 0 or -errno. -ETIMEDOUT: a thread did not stop in that time. -ESRCH: no thread is left. Also
 * -EPERM. No thread is stopped after an error. */
int ct_freeze_begin(struct ct_freeze *freeze, const struct ct_memory *memory, uint64_t patience_ns);
void ct_freeze_end(struct ct_freeze *freeze);

#endif
