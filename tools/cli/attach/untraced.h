/* Finds the processes that have loaded the driver and are not traced, as candidates for `attach`. Called by
 * top_sample.c. */
#ifndef CT_UNTRACED_H
#define CT_UNTRACED_H

#include "processes.h"

#include <stdbool.h>

struct ct_untraced {
    pid_t *pid; /* sorted */
    size_t count, room;
    struct ct_processes processes; /* all processes on the machine */
};

/* Updates the list of untraced processes. Examines only processes that are new, have changed, or have loaded
 * the driver. Returns false if out of memory. */
bool ct_untraced_look(struct ct_untraced *untraced);
void ct_untraced_free(struct ct_untraced *untraced);

#endif
