/* Stores notes: names of objects and kernels, GPU work, and the correlations that connect work with calls. */
#ifndef CT_STORED_NOTES_H
#define CT_STORED_NOTES_H

#include "call.h"

struct ct_store;

/* Stores a note. For GPU work, the note's times and the payload's `queued` are in nanoseconds. A correlation
 * refers to its caller's last call. Ignores a note with an invalid payload, and a correlation that follows no
 * call. If memory is short, the batch fails. */
void ct_store_note(struct ct_store *store, const struct ct_call *note);

#endif
