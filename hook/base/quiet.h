/* On its slow paths the hook opens files and makes system calls. That must not turn the application's calls
 * into cancellation points, cancel a holder of the process lock, or change errno. */
#ifndef CT_QUIET_H
#define CT_QUIET_H

#include <errno.h>
#include <pthread.h>

struct quiet {
    int saved_errno, cancel_state;
};

static inline struct quiet quiet_begin(void)
{
    struct quiet quiet = { .saved_errno = errno };
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet.cancel_state);
    return quiet;
}

static inline void quiet_end(const struct quiet *quiet)
{
    pthread_setcancelstate(quiet->cancel_state, NULL);
    errno = quiet->saved_errno;
}

/* In effect from here to the end of the block, however that is left. */
#define CT_QUIET const struct quiet quiet_here __attribute__((cleanup(quiet_end), unused)) = quiet_begin()

#endif
