/* Reports what a process has recorded, from its segment in shared memory. Called by doctor_process.c. */
#ifndef CT_DOCTOR_SEGMENT_H
#define CT_DOCTOR_SEGMENT_H

#include "doctor_say.h"

/* The facts that are known about a process before its segment is found. */
struct ct_traced {
    int32_t pid; /* the pid in the process's own PID namespace, as used in the segment's name */
    uint32_t uid;
    const char *session; /* the process's own session */
    uint64_t start_ticks;
    bool driver_loaded;
    bool hooked;           /* the hook is loaded; if false, only a probe records the process */
    const char *hindrance; /* what prevents the hook from recording; empty if nothing does */
};
struct ct_recorded {
    const char *way_in; /* a function that looks up others and has been called; NULL: none */
    unsigned drivers;   /* number of driver images being recorded; 0: nothing is recorded yet */
};
/* Returns whether a probe is recording the process for the session. */
bool ct_doctor_is_probed(const struct ct_doctor *doctor, const struct ct_traced *traced);
/* Reports the process's recorded, lost and skipped calls. */
void ct_doctor_segment(struct ct_doctor *doctor, const struct ct_traced *traced,
                       struct ct_recorded *recorded);

#endif
