/* Calls that a thread is inside of, as its lane says them and as a reader copies them. */
#ifndef CT_PROTO_OPEN_CALL_H
#define CT_PROTO_OPEN_CALL_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

enum { CT_OPEN_MAX = 16 }; /* those that a lane has places for, the outermost */

/* A call entered and not yet returned. */
struct ct_open {
    _Atomic uint64_t start;    /* ticks; 0: the place is empty, as that of a range which ended before what it
                                  encloses */
    _Atomic uint32_t function; /* directory index */
    uint32_t reserved;
};
static_assert(sizeof(struct ct_open) == 16, "ct_open");

struct ct_open_call {
    uint64_t start; /* ticks */
    uint32_t function;
};

#endif
