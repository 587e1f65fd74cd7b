/* Says what a process has recorded, read from its segment in shared memory. Called by doctor_process.c. */
#ifndef CT_DOCTOR_SEGMENT_H
#define CT_DOCTOR_SEGMENT_H

#include "doctor_say.h"

/* The facts about a process that are known before its segment is found. */
struct ct_traced {
    int32_t pid; /* as the process sees itself: its segment is named so */
    uint32_t uid;
    const char *session; /* its own */
    uint64_t start_ticks;
    bool driver_loaded;
    bool hooked; /* else only a probe records it */
};
struct ct_recorded {
    const char *way_in; /* a called function that looks others up; NULL: none */
    unsigned drivers;   /* images of the driver that are recorded; 0: nothing is recorded yet */
};
/* Says what it has recorded, lost and left out. */
void ct_doctor_segment(struct ct_doctor *doctor, const struct ct_traced *traced,
                       struct ct_recorded *recorded);

#endif
