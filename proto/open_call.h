/* A thread's open calls, as stored in its lane and as copied by a reader. */
#ifndef CT_PROTO_OPEN_CALL_H
#define CT_PROTO_OPEN_CALL_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

enum { CT_OPEN_MAX = 16 }; /* the number of places in a lane, which the outermost calls use */

/* A call that has been entered and has not returned. */
struct ct_open {
    /* Ticks. 0 if the place is empty, for example if a range ended before the calls that it encloses. */
    _Atomic uint64_t start;
    _Atomic uint32_t function; /* directory index */
    uint32_t reserved;
};
static_assert(sizeof(struct ct_open) == 16, "ct_open");

struct ct_open_call {
    uint64_t start; /* ticks */
    uint32_t function;
};

#endif
