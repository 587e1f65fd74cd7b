/* Stores the details of calls, and notes. The kind determines the rows that refer to the call. */
#ifndef CT_DETAIL_H
#define CT_DETAIL_H

#include "call.h"
#include "payload.h"

struct ct_store;

/* Names of enum ct_transfer_kind in the trace. */
extern const char *const ct_transfer_names[CT_TRANSFER_COUNT];

/* Stores a note: the name of an object or of a kernel. */
void ct_store_note(struct ct_store *store, const struct ct_call *note);

/* For the store only. Stores the details of the call with this id. */
void ct_detail_store(struct ct_store *store, const struct ct_call *call, int64_t call_id);

#endif
