/* What users may take of what all share: most of one user, and of all together. Of what is left nobody gets
 * more than he leaves to others: one user alone has half of all at most, two have a third each, and who comes
 * later finds some still free. A user who goes beyond starves himself, and is told so: in the log, in
 * `status` and by his `flush`.
 *
 * In a session of one user's own nothing is divided, and the bounds of all hold. */
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
    CT_SHARED_FUNCTIONS, /* of live processes, whose calls are counted apart: 40 bytes each */
    CT_SHARED_NAMES,     /* of functions that the trace did not know, since the daemon's start */
    CT_SHARED_COUNT
};

struct ct_share_bound {
    uint32_t of_user, of_all;
};
extern const struct ct_share_bound ct_share_bounds[CT_SHARED_COUNT];

/* What somebody has, or all have. */
struct ct_holding {
    uint32_t has[CT_SHARED_COUNT];
};

/* Takes one more for `user`, NULL in a session that is not divided. `of_all`: a lower bound than the table's,
 * or 0. False when there is none for him; nothing is taken then. */
bool ct_share_take(struct ct_holding *all, struct ct_holding *user, enum ct_shared what, uint32_t of_all);
/* Whether there is one for him. */
bool ct_share_has_room(const struct ct_holding *all, const struct ct_holding *user, enum ct_shared what,
                       uint32_t of_all);
void ct_share_give(struct ct_holding *all, struct ct_holding *user, enum ct_shared what, uint32_t count);

#endif
