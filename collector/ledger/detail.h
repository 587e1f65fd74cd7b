/* Stores what a record says beside its time, for the ledger: the kind decides which rows name the call. */
#ifndef CT_DETAIL_H
#define CT_DETAIL_H

#include "call.h"
#include "payload.h"

struct ct_store;

/* Names of enum ct_transfer_kind, as the trace has them. */
extern const char *const ct_transfer_names[CT_TRANSFER_COUNT];

/* Stores the details of the call that was placed last. */
void ct_detail_store(struct ct_store *store, int64_t process_id, const struct ct_call *call);

/* Stores what a note says: a name of an object, or a kernel's. */
void ct_detail_note(struct ct_store *store, int64_t process_id, const struct ct_call *note);

#endif
