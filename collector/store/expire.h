/* Taking rows away again that are older than what is kept, a piece at a time, in transactions of their own
 * between batches. Their pages are used again by later rows: the file stops growing without VACUUM. Sums stay
 * as they are; `total.expired` says how many of the stored rows are gone. */
#ifndef CT_EXPIRE_H
#define CT_EXPIRE_H

#include <stdbool.h>
#include <stdint.h>

struct ct_store;

struct ct_expired {
    uint64_t rows; /* calls */
    bool more;     /* there are more to take away now */
};
/* Takes away calls that returned before `before_ns`, the oldest `rows_max` at most, with all that is known of
 * them, in a transaction of its own: never between begin and commit. What is looked for more rarely is when
 * `now_ns` is a second on. 0, or -1; then roll back. */
int ct_store_expire(struct ct_store *store, uint64_t now_ns, uint64_t before_ns, uint64_t rows_max,
                    struct ct_expired *expired);

#endif
