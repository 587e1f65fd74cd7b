/* Carries out the steps of a visit (proto/visit.h). A step that fails undoes its changes. Times are in
 * nanoseconds. */
#ifndef CT_ATTACH_VISITOR_H
#define CT_ATTACH_VISITOR_H

#include "area.h"
#include "driver_slots.h"
#include "library.h"

struct ct_visitor {
    const struct ct_memory *memory;
    const struct ct_library *hook;
    struct ct_area area;
    uint64_t stops, stopped_ns, longest_ns; /* number of stops, their total duration, and the longest one */
    int fault;                              /* the signal that ended our code in the process; 0: none */
    pid_t file_thread;                      /* the thread that has opened the library's file; 0: none */
    uint64_t asked_ns; /* when the command first saw that a thread asks for a grant; 0: none does */
};

struct ct_visitor_plan {
    const struct ct_driver_slots *slots;
    const struct ct_visit *visit;
    uint64_t find_dlopen, find_dlerror, find_cancel, find_errno, find_cancel_type, find_atfork;
    uint64_t made_list; /* address of the made slots; 0: none */
    uint32_t made_count;
    int32_t inner_pid;
};

/* Finds the area and the library left by earlier visits. */
void ct_visitor_begin(struct ct_visitor *visitor, const struct ct_memory *memory,
                      const struct ct_library *library);
/* Puts the area and the library into the process. Returns 0 or -errno. */
int ct_visitor_prepare(struct ct_visitor *visitor, const struct ct_visitor_plan *plan);
/* Installs the thunks. The next call to the driver completes the visit. */
int ct_visitor_arm(struct ct_visitor *visitor);
/* Reads the area's state into visitor->area.data. Returns false if the process has exited or has executed
 * another program. */
bool ct_visitor_look(struct ct_visitor *visitor);
/* Makes the area ARMED again after a thread has asked for a grant in vain. */
bool ct_visitor_rearm(struct ct_visitor *visitor);
/* Removes the thunks, unless a thread has entered one, which area.data.state shows. Closes the library's
 * descriptor in the process. */
int ct_visitor_disarm(struct ct_visitor *visitor);
/* Returns whether the library's file is still open in the thread that has opened it. */
bool ct_visitor_has_file(const struct ct_visitor *visitor);
/* Makes the hook end its recording, without a system call in a process that has confined itself. The hook's
 * answer is then in area.data.left. */
int ct_visitor_leave(struct ct_visitor *visitor, bool is_confined);

#endif
