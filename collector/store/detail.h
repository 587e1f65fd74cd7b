/* Stores a record's details for the ledger. The kind of the record determines which rows refer to the
 * call. */
#ifndef CT_DETAIL_H
#define CT_DETAIL_H

#include "call.h"
#include "payload.h"

struct ct_store;

/* Names of enum ct_transfer_kind in the trace. */
extern const char *const ct_transfer_names[CT_TRANSFER_COUNT];

/* Stores the details of the last placed call. */
void ct_detail_store(struct ct_store *store, int64_t process_id, const struct ct_call *call);

/* Stores a note: the name of an object or of a kernel. */
void ct_detail_note(struct ct_store *store, int64_t process_id, const struct ct_call *note);

#endif
