/* Names that the program gives to threads and to CUDA objects. Called by nvtx.c, by the decoders of what ends
 * an object, and by thread.c. */
#ifndef CT_NAMED_H
#define CT_NAMED_H

#include "hook.h"
#include "role.h"

#pragma GCC visibility push(hidden)

enum {
    CT_NAMED_MAX = 1024, /* objects whose names are kept for the next daemon; later ones are sent once, and their end */
    CT_NAMED_TEXT_BYTES = 256, /* of a name, with its NUL: what exceeds it is cut at a character */
};

/* How many have a name: while it is 0, as mostly, no end of an object is looked at. */
extern _Atomic uint32_t ct_named_count;

/* `handle` is called `name` from now on, by nobody's name where it is empty. Sent at once if there is a
 * daemon, and again with each segment that comes. `name` has CT_NAMED_TEXT_BYTES at most. */
void ct_named_set(enum ct_role role, uint64_t handle, const char *name);
/* The object has ended: its handle may come again. `producer` is the frame's. */
void ct_named_end(enum ct_role role, uint64_t handle, struct ct_producer *producer);
/* The calling thread ends. */
void ct_named_thread_exit(void);
/* In a fork's child: its parent's objects are not its own. */
void ct_named_forget(void);
/* Sends what the segment of `producer` has not got, as far as there is room. The lane is held and announced.
 */
void ct_named_send(struct ct_producer *producer);

#pragma GCC visibility pop

#endif
