/* A thread's lane. A thread takes a lane at its first call, and gives the lane back when it exits. */
#ifndef CT_THREAD_H
#define CT_THREAD_H

#include "payload.h"
#include "producer.h"

/* Takes a lane in `segment`, the process's current segment, for the calling thread, which must not have a
 * lane yet. Returns false if no lane is currently available. `frame` is the stack address of the thread's
 * call, or 0 if unknown. */
bool ct_thread_take(struct ct_segment *segment, uintptr_t frame);
/* Registers `send`, which is called whenever a thread takes a lane. It writes further records after the
 * record that introduces the thread. The lane is held and announced while `send` runs. */
void ct_thread_on_take(void (*send)(struct ct_producer *producer));

struct ct_thread_identity {
    uint32_t tid;
    struct ct_thread_name name;
};
/* Takes a lane that is not the calling thread's own. A probe uses such lanes to write the records of other
 * processes' threads. The hook's thread for GPU work also uses such a lane, because its own calls are not
 * recorded. Returns NULL if no lane is currently available. Only one thread may use such lanes. */
struct ct_producer *ct_thread_take_for(struct ct_segment *segment, const struct ct_thread_identity *owner);
/* Gives the lane back once there are no more records for it. */
void ct_thread_give_back_for(struct ct_producer *producer);

/* Functions called when a thread exits: NAME while the thread still has its lane, RANGES after it has dropped
 * the lane, and GPU after it has given the lane back. */
enum ct_thread_end { CT_THREAD_NAME, CT_THREAD_RANGES, CT_THREAD_GPU, CT_THREAD_ENDS };
/* Makes the calling thread call `end` when it exits, whether or not it has a lane. Each value of `which` must
 * always be used with the same function. */
void ct_thread_watch_end(enum ct_thread_end which, void (*end)(void));
/* Called from time to time, in case the end of the thread could not be watched in a signal handler. */
void ct_thread_watch_again(void);

/* Drops the calling thread's lane without giving it back. Used if the process lock is not available, and in
 * the child of a fork, whose parent owns the lane. */
void ct_thread_forget(void);
/* Gives the calling thread's lane back while the thread lives. `frame` is an address in the caller's stack
 * frame. If a call or a range is open there, the lane stays in use until the process ends, and the open calls
 * are counted as lost. */
void ct_thread_withdraw(uintptr_t frame);
/* Drops the calling thread's lane in an abandoned segment. Requires the process lock. */
void ct_thread_let_go(void);
/* Called in the child of a fork, in which the kernel has wiped the producers. Maps private memory over the
 * lane that the calling thread had in the parent's segment. A signal handler may have forked while a record
 * was being written. In that case, the interrupted code continues in the child, possibly with the lane's
 * address in a register. */
void ct_thread_redirect(void);

#endif
