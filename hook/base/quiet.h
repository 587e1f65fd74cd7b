/* Quiet: on its slow ways the hook opens files and makes system calls. That must make no point of
 * cancellation of the application's calls, cancel no holder of the process's lock, and leave errno alone. */
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

/* Holds from here to the end of the block, whichever way that is left. */
#define CT_QUIET const struct quiet quiet_here __attribute__((cleanup(quiet_end), unused)) = quiet_begin()

#endif
