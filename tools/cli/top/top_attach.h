/* Runs `cudatrace attach --stay` for a process that the user chose on the screen, as a child process. Called
 * by top_screen.c. */
#ifndef CT_TOP_ATTACH_H
#define CT_TOP_ATTACH_H

#include "top_sample.h"

struct ct_top_attach {
    pid_t child;    /* pid of the child process; 0: none */
    int output;     /* a file in memory for its output, so that it waits for no reader */
    char text[640]; /* its last message, printable; empty: nothing to show */
};

/* Starts an attach, unless one is running. It records for the daemon that writes the trace. */
void ct_top_attach_start(struct ct_top_attach *attach, const struct ct_top *top, pid_t pid);
/* Reads the messages of the attach. Returns whether it has just ended. */
bool ct_top_attach_look(struct ct_top_attach *attach);

#endif
