/* The hook's only kind of lock. Taking an uncontended lock makes no system call. A thread that must wait
 * lends its priority to the holder (FUTEX_LOCK_PI), and waits at most ten seconds. If a thread fails to take
 * the lock, or is in a signal handler that interrupted the holder, it continues without the protected data.
 *
 * There are two locks. The process lock (ct_process_lock()) blocks signals while held. The table lock
 * (ct_table_lock()), which protects the data about the program's objects, does not block signals. A thread
 * that holds the table lock may take the process lock. */
#ifndef CT_LOCK_H
#define CT_LOCK_H

#include "compiler.h"
#include "error_guard.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ct_lock {
    _Atomic uint32_t
        word; /* as the kernel defines it: the holder's thread number and FUTEX_WAITERS; 0: free */
    _Atomic uint32_t stuck; /* the holder that a waiter has timed out on; threads no longer wait for that
                             * holder */
    /* True if signals are blocked while the lock is held, so that a signal handler cannot interrupt the
     * holder and find the lock taken. Once a system call filter is installed (system.h), signals are no
     * longer blocked. */
    const bool signals_wait;
    bool masked;      /* by the holder */
    bool is_bare;     /* taken by ct_lock_try() */
    uintptr_t frame;  /* an address on the holder's stack */
    uint64_t signals; /* the holder's signal mask before it took the lock */
    struct error_guard guard;
};

/* Takes the lock. Returns false if the caller already holds the lock, or cannot get it. Cancellation is
 * disabled while the lock is held. ct_lock_give() restores errno. */
bool ct_lock_take(struct ct_lock *lock);
void ct_lock_give(struct ct_lock *lock);
/* Takes the lock if it is free, without waiting. Does not touch the signal mask or cancellation, since a
 * visit may force a thread to call this function at any instruction (proto/visit.h). */
bool ct_lock_try(struct ct_lock *lock);
/* Frees the lock in the child of a fork, where the holder may no longer exist. */
void ct_lock_forget(struct ct_lock *lock);

extern CT_LOCAL uint32_t ct_lock_patience_ms; /* for tests */

/* Returns the calling thread's ID (tid), which is cached after the first call. */
uint32_t ct_thread_number(void);
/* Forgets the cached ID. Called in the child of a fork, whose thread has a different ID. */
void ct_thread_number_forget(void);

#endif
