/* Writes whole lines, with a limit on how long a slow reader may delay them. Called by tail_print.c. */
#ifndef CT_TAIL_OUTPUT_H
#define CT_TAIL_OUTPUT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct ct_tail_output {
    int fd;
    const volatile sig_atomic_t *stop; /* if nonzero, output ends with the current line; may be NULL */
    const sigset_t *mask;              /* the signal mask during waits and writes; NULL if unchanged */
    FILE *lines;                       /* collects the lines to write */
    char *bytes;
    size_t count;
    bool is_within_line; /* the last line written is incomplete */
    bool is_gone;        /* nothing more can be written */
    int error;           /* the reason for `is_gone`; 0 if the reader has closed its end */
};

/* Returns false if out of memory. */
bool ct_tail_output_open(struct ct_tail_output *output);
void ct_tail_output_close(struct ct_tail_output *output);
/* Returns the number of bytes that have been collected but not written. */
size_t ct_tail_output_pending(const struct ct_tail_output *output);
/* Writes the collected lines until `until_ns` (0: no limit), drops the whole lines that remain, and returns
 * their number. */
uint64_t ct_tail_output_send(struct ct_tail_output *output, uint64_t until_ns);
/* Waits for `wait_ns`, until the output is closed, or until `fd` is readable or closed (-1: none). Returns
 * whether `fd` is readable or closed. */
bool ct_tail_output_wait(struct ct_tail_output *output, int fd, uint64_t wait_ns);

#endif
