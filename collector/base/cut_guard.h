/* Guards mapped memory that another process may truncate. A read past the file's new end raises SIGBUS. The
 * signal handler then maps zeros over the rest of the range, so that the read can continue, and marks the
 * range as poisoned. */
#ifndef CT_GUARD_H
#define CT_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_guard {
    _Atomic uintptr_t begin; /* 0: not in use */
    _Atomic size_t bytes;
    _Atomic bool poisoned; /* zeros have been mapped, so the data that was read may be wrong */
    struct ct_guard *next, *next_free;
};

/* Call once, before the first guard. */
void ct_guard_install(void);
/* Guards a mapping until ct_guard_remove() is called. Returns NULL if out of memory. Can be called from any
 * thread. */
struct ct_guard *ct_guard_add(void *map, size_t bytes);
/* `guard` may be NULL. */
void ct_guard_remove(struct ct_guard *guard);

#endif
