/* A thread's lane: taken at its first call, given back at its exit. */
#ifndef CT_THREAD_H
#define CT_THREAD_H

#include "payload.h"
#include "producer.h"

/* Takes a lane of the segment, the process's current one, for the calling thread, which has none; false when
 * there is none to be had now. `frame` is where its call stands on the stack, 0 where that is not known. */
bool ct_thread_take(struct ct_segment *segment, uintptr_t frame);
/* Has every thread that takes a lane write these records behind its introduction. The lane is held and
 * announced. */
void ct_thread_on_take(void (*send)(struct ct_producer *producer));

struct ct_thread_identity {
    uint32_t tid;
    struct ct_thread_name name;
};
/* Takes a lane for a thread of another process: a probe writes the records of its calls. NULL if there is no
 * lane to be had now. Only one thread of the probe may use lanes. */
struct ct_producer *ct_thread_take_for(struct ct_segment *segment, const struct ct_thread_identity *owner);
/* Gives the lane back when that thread has ended. */
void ct_thread_give_back_for(struct ct_producer *producer);

/* Ends with a thread: its name, while it still has its lane, and its ranges, behind that. */
enum ct_thread_end { CT_THREAD_NAME, CT_THREAD_RANGES, CT_THREAD_ENDS };
/* Has `end` run when the calling thread ends, lane or no lane; it is always the same one. */
void ct_thread_watch_end(enum ct_thread_end which, void (*end)(void));

/* Gives the calling thread's lane up without giving it back: it belongs to a parent. */
void ct_thread_forget(void);
/* The same for a lane of a segment that is gone; the process lock is held. */
void ct_thread_let_go(void);
/* In a fork's child, whose producers the kernel has wiped: private memory at the address of the calling
 * thread's lane in its parent's segment. The fork may have been made by a signal handler that interrupted a
 * call here, which goes on to write, and may have the address in a register. */
void ct_thread_redirect(void);

#endif
