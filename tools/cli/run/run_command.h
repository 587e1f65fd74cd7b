/* A command that is run as if it stood in our place: who sends us a signal reaches it, who waits for us
 * learns what became of it.
 *
 * Three processes: this one, which those who started us know; the keeper, its child; and the command, the
 * keeper's. The keeper waits for the command, and tells us to stop, to go on and to end as it does. It also
 * tells whom a signal was sent to: all are blocked in it and stay pending, so that one which it has as well
 * was sent to all of the group (by the terminal, by kill(-group)), and the command has it already. What we
 * alone were sent is passed on. */
#ifndef CT_RUN_COMMAND_H
#define CT_RUN_COMMAND_H

#include <stdbool.h>

struct ct_command_plan {
    char **argv;
    /* Called in the command's process before it is executed; it leaves with 1 where that is false. */
    bool (*prepare)(const void *data);
    /* Called in the keeper, when this process was killed and the command then with it. */
    void (*on_orphaned)(const void *data);
    /* Called in this process when its descriptors are closed. May be NULL. */
    void (*on_started)(void *data);
    void *data;
    int keep;  /* a descriptor that both need afterwards */
    int front; /* a descriptor that this process needs afterwards */
};

/* Runs it to its end; its status is as waitpid() has it. Signals stay blocked, and of the descriptors that
 * were open only standard error, `keep` and `front` are afterwards: what the command closes is closed. False
 * after reporting that it could not be started, or was lost sight of. */
bool ct_command_run(const struct ct_command_plan *plan, int *wait_status);
/* Lets signals do to this process what they did before the command ran, for a wait that may take hours. */
void ct_command_wait_as_usual(void);
/* Lets SIGINT, SIGTERM, SIGHUP and SIGQUIT end this process again, two seconds after one comes: the rest of
 * the work may take long. */
void ct_command_release(void);
/* Leaves as the command did: returns its exit status, or dies of its signal. */
int ct_command_end_as(int wait_status);

#endif
