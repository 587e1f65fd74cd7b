/* A call on its way from a source to the store. Sources fill in the struct without depending on the database.
 * The ledger, the recorder and the store read it without depending on the source. */
#ifndef CT_CALL_H
#define CT_CALL_H

#include "record.h"

struct ct_caller; /* the ledger's structs for the thread and the function */
struct ct_callee;

struct ct_call {
    uint64_t end_ns; /* when the call returned; the time of a note */
    uint64_t duration_ns;
    struct ct_caller *caller;
    struct ct_callee *callee; /* NULL for a note */
    uint64_t value;           /* as in the record; meaning depends on the kind */
    const void *payload;      /* the kind's data, then texts; valid until the stream is filled again */
    int32_t status;
    uint16_t payload_bytes;
    uint8_t kind; /* enum ct_kind: a call, or a note (a name, a thread, a string, GPU work) */
    uint8_t depth;
    uint8_t flags; /* CT_FLAG_BYTES etc. */
};
static_assert(sizeof(struct ct_call) <= 64, "ct_call");

/* Returns the time by which the merge orders this call, or 0 for a note, which takes effect at its place in
 * the stream. */
static inline uint64_t ct_call_due_ns(const struct ct_call *call)
{
    return ct_kind_is_call(call->kind) ? call->end_ns : 0;
}

#endif
