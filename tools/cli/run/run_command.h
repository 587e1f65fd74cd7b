/* Runs a command so that this process behaves as if it were the command. Signals sent to this process reach
 * the command, and our parent sees when the command stops, continues and ends.
 *
 * There are three processes. The front is this process, the only one that our parent knows. The keeper is the
 * front's child, and the command is the keeper's child. The keeper waits for the command, and makes the front
 * stop, continue and end whenever the command does. The keeper also blocks all signals, so that signals sent
 * to the whole process group stay pending in it. If a signal to the front is also pending in the keeper, a
 * terminal or kill(-group) has sent it to the group, and the command has already received it. A signal that
 * only the front has received is passed on to the command.
 * */
#ifndef CT_RUN_COMMAND_H
#define CT_RUN_COMMAND_H

#include <stdbool.h>

struct ct_command_plan {
    char **argv;
    /* Called in the command's process before the command is executed. If this function returns false, the
     * process exits with 1. */
    bool (*prepare)(const void *data);
    /* Called in the keeper after this process was killed and the keeper has killed the command as well. */
    void (*on_orphaned)(const void *data);
    /* Called in this process after it has closed inherited descriptors. May be NULL. */
    void (*on_started)(void *data);
    void *data;
    int keep;  /* a descriptor that this process and the keeper keep open */
    int front; /* a descriptor that only this process keeps open */
};

/* Runs the command until it ends, and stores its status from waitpid() in *wait_status. Signals stay blocked.
 * Only standard error, `keep` and `front` stay open in this process, so that a file closed by the command is
 * really closed. Returns false after reporting that the command could not be started or that its wait status
 * is unknown. */
bool ct_command_run(const struct ct_command_plan *plan, int *wait_status);
/* Restores the signal mask from before the command ran, so that a wait of hours can be interrupted. */
void ct_command_wait_as_usual(void);
/* Lets SIGINT, SIGTERM, SIGHUP and SIGQUIT end this process again, because the remaining work may take long.
 * The process ends two seconds after such a signal arrives. */
void ct_command_release(void);
/* Ends the way the command did. Returns the command's exit status, or kills this process with the signal that
 * killed the command. */
int ct_command_end_as(int wait_status);

#endif
