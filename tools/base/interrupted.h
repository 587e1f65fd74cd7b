/* Ctrl-C of a command that blocks the signals that end it, and checks for them at each step. Called by attach
 * and probe. */
#ifndef CT_INTERRUPTED_H
#define CT_INTERRUPTED_H

#include <signal.h>
#include <stdbool.h>

/* Returns whether the signal is pending. It stays pending. The signal must be blocked. */
static inline bool ct_has_signal(int number)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, number) == 1;
}

/* Returns whether Ctrl-C was pressed, or the command was asked to terminate. */
static inline bool ct_is_interrupted(void)
{
    return ct_has_signal(SIGINT) || ct_has_signal(SIGTERM);
}

/* The same for a command that a hang-up ends, too. */
static inline bool ct_is_interrupted_or_hung_up(void)
{
    return ct_is_interrupted() || ct_has_signal(SIGHUP);
}

#endif
