/* Mapped memory that somebody else may truncate. A read behind the new end raises SIGBUS; the handler here
 * puts zeros under the read and all that follows, so that it goes on, and remembers that the range is
 * poisoned. */
#ifndef CT_GUARD_H
#define CT_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_guard {
    _Atomic uintptr_t begin; /* 0: watches nothing */
    _Atomic size_t bytes;
    _Atomic bool poisoned; /* zeros were put in: what was read since may be anything */
    struct ct_guard *next, *next_free;
};

/* Once, before the first guard. */
void ct_guard_install(void);
/* Watches a mapping until ct_guard_remove(); NULL without memory. Any thread. */
struct ct_guard *ct_guard_add(void *map, size_t bytes);
/* NULL is fine. */
void ct_guard_remove(struct ct_guard *guard);

#endif
