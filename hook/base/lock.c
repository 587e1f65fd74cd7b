#include "lock.h"

#include "compiler.h"
#include "fork.h"
#include "stack.h"
#include "system.h"
#include "test_point.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How long a thread waits for the lock: long enough even if hundreds of threads on a few processors preempt
 * the holder. */
uint32_t ct_lock_patience_ms = 10000;

static struct timespec later(struct timespec time)
{
    const uint64_t ns = (uint64_t)time.tv_nsec + (uint64_t)ct_lock_patience_ms * 1000000;
    time.tv_sec += (time_t)(ns / 1000000000);
    time.tv_nsec = (long)(ns % 1000000000);
    return time;
}

static __thread uint32_t own_number;
static _Atomic bool no_inheritance; /* the kernel lacks futexes with priority inheritance */

/* Gets the thread ID from the C library, for use when system calls are not allowed. In glibc, an
 * error-checking mutex contains its owner's thread ID, whereas musl leaves 0 there. */
static uint32_t number_by_mutex(void)
{
    uint32_t number = 0;
    pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    if (pthread_mutex_lock(&mutex) == 0) {
        number = (uint32_t)mutex.__data.__owner;
        pthread_mutex_unlock(&mutex);
    }
    return number;
}

uint32_t ct_thread_number(void)
{
    const bool kept = ct_fork_memory() == CT_MEMORY_OWN;
    if (CT_LIKELY(own_number && kept))
        return own_number;
    uint32_t number;
    if (ct_system_begin()) {
        number = (uint32_t)syscall(SYS_gettid);
        ct_system_end();
    } else {
        number = number_by_mutex();
    }
    if (kept)
        own_number = number;
    return number;
}

void ct_thread_number_forget(void)
{
    own_number = 0;
}

static long futex(struct ct_lock *lock, int operation, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, &lock->word, operation | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

static bool try(struct ct_lock *lock, uint32_t number, uint32_t *found)
{
    *found = 0;
    return atomic_compare_exchange_strong_explicit(&lock->word, found, number, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* Waits without priority inheritance. When the holder releases the lock, it wakes all waiters. */
static int sleep_for(struct ct_lock *lock, uint32_t found)
{
    const struct timespec patience = later((struct timespec){ 0 });
    const uint32_t waited = found | FUTEX_WAITERS;
    if (found != waited && !atomic_compare_exchange_strong(&lock->word, &found, waited))
        return EAGAIN;
    return futex(lock, FUTEX_WAIT, waited, &patience) == 0 ? 0 : errno;
}

/* Waits in the kernel for a lock that another thread holds. */
static bool wait_for(struct ct_lock *lock, uint32_t number, uint32_t found)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now); /* the only clock that FUTEX_LOCK_PI supports */
    const struct timespec until = later(now);
    CT_TEST_POINT("lock.waiting");
    while (ct_system_allowed()) { /* a filter may be about to be installed */
        if (found == 0 && try(lock, number, &found))
            return true;
        int error;
        if (atomic_load_explicit(&no_inheritance, memory_order_relaxed)) {
            error = sleep_for(lock, found);
            found = 0;
        } else if (futex(lock, FUTEX_LOCK_PI, 0, &until) == 0) {
            /* Pairs with the release in give_to_next(), since sanitizers cannot see that the kernel hands
             * over the lock. */
            atomic_load_explicit(&lock->word, memory_order_acquire);
            return true;
        } else {
            error = errno;
        }
        if (error == ENOSYS) {
            atomic_store_explicit(&no_inheritance, true, memory_order_relaxed);
        } else if (error == ESRCH) { /* the holder no longer exists */
            found = atomic_load_explicit(&lock->word, memory_order_relaxed);
            if (found && atomic_compare_exchange_strong(&lock->word, &found, number))
                return true;
        } else if (error == ETIMEDOUT) {
            atomic_store_explicit(&lock->stuck, atomic_load(&lock->word) & FUTEX_TID_MASK,
                                  memory_order_relaxed);
            return false;
        } else if (error != 0 && error != EINTR && error != EAGAIN) {
            return false;
        }
    }
    return false;
}

static bool take(struct ct_lock *lock, uint32_t number)
{
    uint32_t found;
    if (CT_LIKELY(try(lock, number, &found)))
        return true;
    const uint32_t holder = found & FUTEX_TID_MASK;
    /* If a signal handler jumped out of the code that held the lock, the protected data may be half-changed,
     * which readers can cope with. */
    if (holder == number)
        return lock->frame && ct_stack_left(lock->frame, (uintptr_t)__builtin_frame_address(0));
    if (holder == atomic_load_explicit(&lock->stuck, memory_order_relaxed) || !ct_system_begin())
        return false;
    const bool taken = wait_for(lock, number, found);
    ct_system_end();
    return taken;
}

bool ct_lock_take(struct ct_lock *lock)
{
    const struct error_guard guard = error_guard_begin();
    const uint32_t number = ct_thread_number();
    const bool masked = lock->signals_wait && ct_system_begin();
    const uint64_t signals = masked ? ct_system_block_signals() : 0;
    if (number == 0 || !take(lock, number)) {
        if (masked) {
            ct_system_mask_signals(signals);
            ct_system_end();
        }
        error_guard_end(&guard);
        return false;
    }
    atomic_store_explicit(&lock->stuck, 0, memory_order_relaxed);
    lock->masked = masked;
    lock->signals = signals;
    lock->guard = guard;
    lock->frame = (uintptr_t)__builtin_frame_address(0);
    return true;
}

bool ct_lock_try(struct ct_lock *lock)
{
    uint32_t found;
    if (!try(lock, (uint32_t)syscall(SYS_gettid), &found))
        return false;
    lock->is_bare = true;
    return true;
}

/* Called by the lock's holder if a thread is waiting for the lock, or has given up waiting. */
static void give_to_next(struct ct_lock *lock)
{
    if (!ct_system_allowed() && ct_system_alone()) {
        atomic_store_explicit(&lock->word, 0, memory_order_release);
        return;
    }
    /* Leaves the value unchanged, but pairs with the acquire in wait_for(). */
    atomic_fetch_or_explicit(&lock->word, 0, memory_order_release);
    ct_system_begin_anyway();
    const bool inherits = !atomic_load_explicit(&no_inheritance, memory_order_relaxed);
    if (!inherits || futex(lock, FUTEX_UNLOCK_PI, 0, NULL) != 0) {
        atomic_store_explicit(&lock->word, 0, memory_order_release);
        futex(lock, FUTEX_WAKE, INT32_MAX, NULL);
    }
    ct_system_end();
}

void ct_lock_give(struct ct_lock *lock)
{
    const bool masked = lock->masked && !lock->is_bare;
    const uint64_t signals = lock->signals;
    const struct error_guard guard = lock->guard;
    const bool is_bare = lock->is_bare;
    lock->is_bare = false;
    lock->frame = 0;
    uint32_t held = atomic_load_explicit(&lock->word, memory_order_relaxed) & FUTEX_TID_MASK;
    if (CT_UNLIKELY(!atomic_compare_exchange_strong_explicit(&lock->word, &held, 0, memory_order_release,
                                                             memory_order_relaxed)))
        give_to_next(lock);
    if (masked) {
        ct_system_mask_signals(signals);
        ct_system_end();
    }
    if (!is_bare)
        error_guard_end(&guard);
}

void ct_lock_forget(struct ct_lock *lock)
{
    lock->frame = 0;
    lock->masked = lock->is_bare = false;
    atomic_store(&lock->stuck, 0);
    atomic_store(&lock->word, 0);
}
