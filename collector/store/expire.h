/* Removes rows that are older than the retention time, step by step, in separate transactions between
 * batches. Later rows reuse the freed pages, so the file stops growing even without VACUUM. Sums stay
 * unchanged. `total.expired` counts the stored rows that were removed. */
#ifndef CT_EXPIRE_H
#define CT_EXPIRE_H

#include <stdbool.h>
#include <stdint.h>

struct ct_store;

struct ct_expired {
    uint64_t rows; /* calls */
    bool more;     /* more calls are due */
};
/* Removes at most `rows_max` of the calls that returned before `before_ns`, the oldest first, and everything
 * that belongs to them. Runs its own transaction, so it must not be called between begin and commit. Removes
 * freed allocations and unused IDs at most once per second of `now_ns`. Returns 0 or -1. After an error, the
 * caller must roll back. */
int ct_store_expire(struct ct_store *store, uint64_t now_ns, uint64_t before_ns, uint64_t rows_max,
                    struct ct_expired *expired);

#endif
