/* Runs a command as if it were this process. Signals that are sent to this process reach the command, and our
 * parent sees how the command stops, continues and ends.
 *
 * There are three processes. The front is this process, which our parent knows. The keeper is its child, and
 * the command is the keeper's child. The keeper waits for the command, and has the front stop, continue and
 * end like it. The keeper also reveals whether a signal was sent to the whole group. It blocks all signals,
 * so that they stay pending. If a signal is also pending in the keeper, it was sent to the group (by the
 * terminal, or by kill(-group)), and the command has it already. A signal that only the front got is passed
 * on.
 */
#ifndef CT_RUN_COMMAND_H
#define CT_RUN_COMMAND_H

#include <stdbool.h>

struct ct_command_plan {
    char **argv;
    /* Called in the command's process before it is executed. If this returns false, that process exits with
     * 1. */
    bool (*prepare)(const void *data);
    /* Called in the keeper if this process was killed, after the keeper has killed the command as well. */
    void (*on_orphaned)(const void *data);
    /* Called in this process after it has closed its descriptors. May be NULL. */
    void (*on_started)(void *data);
    void *data;
    int keep;  /* a descriptor that this process and the keeper need afterwards */
    int front; /* a descriptor that only this process needs afterwards */
};

/* Runs the command to its end. *wait_status gets the status from waitpid(). Signals stay blocked. Only
 * standard error, `keep` and `front` stay open in this process, so that a file that the command closes is
 * really closed. Returns false after reporting that the command could not be started, or that its wait status
 * is not known. */
bool ct_command_run(const struct ct_command_plan *plan, int *wait_status);
/* Restores the signal mask from before the command ran, for a wait that may take hours. */
void ct_command_wait_as_usual(void);
/* Lets SIGINT, SIGTERM, SIGHUP and SIGQUIT end this process again, two seconds after one arrives. The
 * remaining work may take long. */
void ct_command_release(void);
/* Ends like the command: returns its exit status, or dies of its signal. */
int ct_command_end_as(int wait_status);

#endif
