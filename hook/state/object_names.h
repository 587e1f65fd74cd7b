/* Names that the program gives to threads and to CUDA objects. */
#ifndef CT_OBJECT_NAMES_H
#define CT_OBJECT_NAMES_H

#include "names.h"
#include "producer.h"

enum {
    CT_NAMED_MAX = 1024, /* names kept for the next daemon; further names and their ends are sent only once */
    CT_NAMED_TEXT_BYTES = 256, /* bytes of a name, with its NUL; a longer name is cut at a character */
};

/* Names `handle`, or removes its name if `name` is empty. The name is kept for each new segment, as far as
 * there is room. `name` has CT_NAMED_TEXT_BYTES at most. Returns true if it was kept. */
bool ct_named_keep(enum ct_role role, uint64_t handle, const char *name);
/* Sends that name, kept or not, in the calling thread's lane, which is held. */
void ct_named_tell(struct ct_producer *producer, enum ct_role role, uint64_t handle, const char *name,
                   bool kept);
/* The object has ended, and its handle may be reused. `producer` is the frame's. */
void ct_named_end(enum ct_role role, uint64_t handle, struct ct_producer *producer);
/* The calling thread ends, and so does its name, if it has one. */
void ct_named_end_thread(void);
/* In a fork's child, forgets the names of the parent's objects. */
void ct_named_forget(void);
#endif
