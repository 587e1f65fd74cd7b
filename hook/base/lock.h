/* The hook's one kind of lock. Taken where nobody else wants it, it makes no system call. A thread that must
 * wait lends its priority to the holder (FUTEX_LOCK_PI), and waits for ten seconds at most: whoever does
 * not get the lock does without what it protects, as it does where its own thread holds the lock already and
 * was interrupted by a signal.
 *
 * Two instances: the process's (ct_process_lock()), under which signals wait, and that of what is remembered
 * about the program's objects (ct_table_lock()), where they do not. The second may be held when the first is
 * taken. */
#ifndef CT_LOCK_H
#define CT_LOCK_H

#include "compiler.h"
#include "quiet.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ct_lock {
    _Atomic uint32_t word; /* as the kernel has it: the holder's thread number and FUTEX_WAITERS; 0 is free */
    _Atomic uint32_t stuck; /* the word for which a thread has waited in vain: nobody waits for it again */
    /* Signals wait while it is held: for what a handler's call must not be refused. They do not once a filter
     * was put on (system.h). */
    const bool signals_wait;
    bool masked;      /* by the holder */
    bool is_bare;     /* taken by ct_lock_try() */
    uintptr_t frame;  /* address on the holder's stack */
    uint64_t signals; /* the holder's mask without the lock */
    struct quiet quiet;
};

/* False when the caller holds it already, or cannot have it. Cancellation waits while it is held; errno is
 * afterwards as it was. */
bool ct_lock_take(struct ct_lock *lock);
void ct_lock_give(struct ct_lock *lock);
/* Takes it if it is free, without waiting. Leaves signals and cancellation as they are: a visit has a stopped
 * thread call this anywhere (proto/visit.h). */
bool ct_lock_try(struct ct_lock *lock);
/* In a fork's child, whose holder may have stayed behind. */
void ct_lock_forget(struct ct_lock *lock);

extern CT_LOCAL uint32_t ct_lock_patience_ms; /* for tests */

/* The calling thread's number: asked for once. */
uint32_t ct_thread_number(void);
/* In a fork's child, whose thread has another one. */
void ct_thread_number_forget(void);

#endif
