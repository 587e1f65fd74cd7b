/* A thread's lane: taken at the thread's first call, given back when it exits. */
#ifndef CT_THREAD_H
#define CT_THREAD_H

#include "payload.h"
#include "producer.h"

/* Takes a lane of `segment`, the process's current one, for the calling thread, which has none. Returns false
 * if no lane is available now. `frame` is the stack address of the thread's call, 0 if unknown. */
bool ct_thread_take(struct ct_segment *segment, uintptr_t frame);
/* Registers `send`, which writes further records after a thread's introduction, whenever a thread takes a
 * lane. The lane is held and announced during `send`. */
void ct_thread_on_take(void (*send)(struct ct_producer *producer));

struct ct_thread_identity {
    uint32_t tid;
    struct ct_thread_name name;
};
/* Takes a lane for a thread of another process, for a probe that writes the records of its calls. Returns
 * NULL if no lane is available now. Only one thread of the probe may use lanes. */
struct ct_producer *ct_thread_take_for(struct ct_segment *segment, const struct ct_thread_identity *owner);
/* Gives the lane back after that thread has ended. */
void ct_thread_give_back_for(struct ct_producer *producer);

/* Actions at a thread's end: NAME runs while the thread still has its lane, RANGES after that. */
enum ct_thread_end { CT_THREAD_NAME, CT_THREAD_RANGES, CT_THREAD_ENDS };
/* Has `end` run when the calling thread ends, whether or not it has a lane. `end` is always the same function
 * for a `which`. */
void ct_thread_watch_end(enum ct_thread_end which, void (*end)(void));

/* Drops the calling thread's lane without giving it back: it belongs to a parent. */
void ct_thread_forget(void);
/* The same for a lane of a segment that has been given up. Requires the process lock. */
void ct_thread_let_go(void);
/* Called in a fork's child, whose producers the kernel has wiped. Maps private memory at the address of the
 * calling thread's lane in the parent's segment. If a signal handler forked, the code that it interrupted
 * here continues to write, and may have the address in a register. */
void ct_thread_redirect(void);

#endif
