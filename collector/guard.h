/* Mapped memory that somebody else may truncate. A read behind the new end raises SIGBUS; the handler here
 * puts a page of zeros under the read, so that it goes on, and remembers that the range is poisoned. */
#ifndef CT_GUARD_H
#define CT_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct ct_guard {
    void *map;
    size_t bytes;
    volatile bool poisoned; /* zeros were put in: what was read since may be anything */
    struct ct_guard *next;
};

/* Once, before the first guard. */
void ct_guard_install(void);
/* Watches a mapping until ct_guard_remove(); the caller owns `guard` and the mapping. Any thread. */
void ct_guard_add(struct ct_guard *guard, void *map, size_t bytes);
void ct_guard_remove(struct ct_guard *guard);

#endif
