/* Runs `cudatrace attach --stay` as a child process, for a process that the user has selected on the screen.
 * Called by top_screen.c. */
#ifndef CT_TOP_ATTACH_H
#define CT_TOP_ATTACH_H

#include "top_sample.h"

struct ct_top_attach {
    pid_t child;    /* pid of the child process; 0: none */
    int output;     /* a memfd for the child's output, so that the child never waits for a reader */
    char text[640]; /* the child's last message, printable; empty if there is nothing to show */
};

/* Starts to attach, unless a child is already running. The process will record for the daemon that writes the
 * trace. */
void ct_top_attach_start(struct ct_top_attach *attach, const struct ct_top *top, pid_t pid);
/* Reads the child's messages. Returns whether the child has just exited. */
bool ct_top_attach_look(struct ct_top_attach *attach);

#endif
