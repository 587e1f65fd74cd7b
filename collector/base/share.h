/* Bounds what users take of the resources that all share: `of_user` for one user, `of_all` for all together.
 * Besides, a user gets one more only while the user has less than is left free: one user alone has half of
 * all at most, two have a third each, and a user who comes later finds some still free. A user who wants more
 * starves nobody else, and is told so: in the log, in `status` and by `flush`.
 *
 * In a session of one user's own nothing is divided, and only the bounds of all hold. */
#ifndef CT_SHARE_H
#define CT_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/* The first are the loop thread's, the others the worker's. */
enum ct_shared {
    CT_SHARED_SEGMENTS,  /* open at once: two descriptors and two mappings each, four once they are cut short
                          */
    CT_SHARED_REFUSED,   /* names remembered because there is no segment behind them */
    CT_SHARED_LOOKS,     /* files opened from one look through the directory to the next */
    CT_SHARED_CLIENTS,   /* connections */
    CT_SHARED_LANES,     /* read at once: some 700 bytes each, and a mapping for each 64 of a segment */
    CT_SHARED_FUNCTIONS, /* functions of live processes that are counted apart: 40 bytes each */
    CT_SHARED_NAMES,     /* functions that were new to the trace, since the daemon's start */
    CT_SHARED_COUNT
};

struct ct_share_bound {
    uint32_t of_user, of_all;
};
extern const struct ct_share_bound ct_share_bounds[CT_SHARED_COUNT];

/* Counts what one user has, or all users together. */
struct ct_holding {
    uint32_t has[CT_SHARED_COUNT];
};

/* Takes one more for `user`, NULL in a session that is not divided. `of_all`: a lower bound than the table's,
 * or 0. Returns false, and takes nothing, where there is none left for the user. */
bool ct_share_take(struct ct_holding *all, struct ct_holding *user, enum ct_shared what, uint32_t of_all);
/* Returns whether ct_share_take() would succeed. */
bool ct_share_has_room(const struct ct_holding *all, const struct ct_holding *user, enum ct_shared what,
                       uint32_t of_all);
void ct_share_give(struct ct_holding *all, struct ct_holding *user, enum ct_shared what, uint32_t count);

#endif
