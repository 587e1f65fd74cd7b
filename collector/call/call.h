/* A call on its way from a source to the ledger. Sources fill it, and know nothing of the database; the
 * ledger reads it, and knows nothing of where it comes from. */
#ifndef CT_CALL_H
#define CT_CALL_H

#include "record.h"

struct ct_caller; /* the thread, and the function, as the ledger keeps them */
struct ct_callee;

struct ct_call {
    uint64_t end_ns; /* when it returned; of what is no call, when it was so */
    uint64_t duration_ns;
    struct ct_caller *caller;
    struct ct_callee *callee; /* NULL of what is no call */
    uint64_t value;           /* as the record's, by kind */
    const void *payload;      /* the kind's, and texts; valid until the stream is filled again */
    int32_t status;
    uint16_t payload_bytes;
    uint8_t kind; /* enum ct_kind: a call, or a note of what calls are about (a name, a thread, a string) */
    uint8_t depth;
    uint8_t flags; /* CT_FLAG_BYTES and so on */
};
static_assert(sizeof(struct ct_call) <= 64, "ct_call");

/* Returns when the call's turn is. A note has none: it takes effect where it stands in its stream. */
static inline uint64_t ct_call_due_ns(const struct ct_call *call)
{
    return ct_kind_is_call(call->kind) ? call->end_ns : 0;
}

#endif
