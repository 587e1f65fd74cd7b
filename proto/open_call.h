/* A thread's open calls, as stored in its lane and as copied by a reader. */
#ifndef CT_PROTO_OPEN_CALL_H
#define CT_PROTO_OPEN_CALL_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

enum { CT_OPEN_MAX = 16 }; /* number of places in a lane, which are used by the outermost calls */

/* A call that has been entered but not yet returned. */
struct ct_open {
    /* In ticks. 0 if the place is empty, for example because a range ended before the calls that it
     * encloses. */
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
