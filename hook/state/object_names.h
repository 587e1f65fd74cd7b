/* Names that the program gives to threads and to CUDA objects. */
#ifndef CT_OBJECT_NAMES_H
#define CT_OBJECT_NAMES_H

#include "names.h"
#include "producer.h"

enum {
    CT_NAMED_MAX =
        1024, /* objects whose names are kept for the next daemon; later ones are sent once, and their end */
    CT_NAMED_TEXT_BYTES = 256, /* bytes of a name, with its NUL: what exceeds it is cut at a character */
};

/* `handle` is called `name` from now on, by nobody's name where it is empty: kept for each segment that
 * comes, as far as there is room. `name` has CT_NAMED_TEXT_BYTES at most. */
bool ct_named_keep(enum ct_role role, uint64_t handle, const char *name);
/* Sends that, kept or not, in the calling thread's lane, which is held. */
void ct_named_tell(struct ct_producer *producer, enum ct_role role, uint64_t handle, const char *name,
                   bool kept);
/* The object has ended: its handle may come again. `producer` is the frame's. */
void ct_named_end(enum ct_role role, uint64_t handle, struct ct_producer *producer);
/* The calling thread ends, and its name, if it has told one. */
void ct_named_end_thread(void);
/* In a fork's child: its parent's objects are not its own. */
void ct_named_forget(void);
#endif
