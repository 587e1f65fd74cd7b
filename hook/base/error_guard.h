/* On its slow paths, the hook opens files and makes system calls. Doing so must not turn the application's
 * calls into cancellation points, allow a thread that holds the process lock to be cancelled, or change
 * errno. */
#ifndef CT_ERROR_GUARD_H
#define CT_ERROR_GUARD_H

#include <errno.h>
#include <pthread.h>

struct error_guard {
    int saved_errno, cancel_state;
};

static inline struct error_guard error_guard_begin(void)
{
    struct error_guard guard = { .saved_errno = errno };
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard.cancel_state);
    return guard;
}

/* A thread that is cancelled here because it allows this at any time must exit with PTHREAD_CANCELED. In
 * glibc 2.36, only pthread_setcanceltype() sets this result, but not pthread_setcancelstate(). */
static inline void error_guard_end(const struct error_guard *guard)
{
    int type = PTHREAD_CANCEL_DEFERRED;
    errno = guard->saved_errno;
    if (guard->cancel_state == PTHREAD_CANCEL_DISABLE)
        return;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    pthread_setcancelstate(guard->cancel_state, NULL);
    if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
        pthread_setcanceltype(type, NULL);
}

/* Guards the rest of the enclosing block, even if the block is left early. */
#define CT_ERROR_GUARD                                                                                       \
    const struct error_guard guard_here __attribute__((cleanup(error_guard_end), unused)) =                  \
        error_guard_begin()

#endif
