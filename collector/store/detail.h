/* Stores the details of calls. A call's kind determines which rows refer to it. */
#ifndef CT_DETAIL_H
#define CT_DETAIL_H

#include "call.h"
#include "payload.h"

struct ct_store;

/* The trace's names for enum ct_transfer_kind. */
extern const char *const ct_transfer_names[CT_TRANSFER_COUNT];

/* For the store only. Stores the details of the call with the given ID. */
void ct_detail_store(struct ct_store *store, const struct ct_call *call, int64_t call_id);

#endif
