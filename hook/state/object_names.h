/* Names that the program gives to threads and to CUDA objects. */
#ifndef CT_OBJECT_NAMES_H
#define CT_OBJECT_NAMES_H

#include "names.h"
#include "producer.h"

enum {
    CT_NAMED_MAX = 1024, /* names kept for the next daemon; further names, and their removal, are sent only
                          * once */
    CT_NAMED_TEXT_BYTES = 256, /* size of a name, including the NUL; longer names are truncated at a character
                                * boundary */
};

/* Names `handle`, or removes its name if `name` is empty. If there is room, keeps the name for later
 * segments. `name` takes at most CT_NAMED_TEXT_BYTES. Returns whether the name was kept. */
bool ct_named_keep(enum ct_role role, uint64_t handle, const char *name);
/* Sends the name in the calling thread's lane, which is held. `kept` is the result of ct_named_keep(). */
void ct_named_tell(struct ct_producer *producer, enum ct_role role, uint64_t handle, const char *name,
                   bool kept);
/* Notes that an object has been destroyed, so that its handle may be reused. `producer` is the call frame's
 * producer. */
void ct_named_end(enum ct_role role, uint64_t handle, struct ct_producer *producer);
/* Removes the calling thread's name, because the thread is exiting. */
void ct_named_end_thread(void);
/* In the child of a fork, forgets the parent's object names. */
void ct_named_forget(void);
#endif
