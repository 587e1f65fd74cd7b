/* The users whose processes a system's daemon traces: who they are by the kernel's word, and what each may
 * take of what all share. A user who goes beyond starves nobody else. */
#ifndef CT_USER_H
#define CT_USER_H

#include "merge.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- shares ----
 *
 * Bounds what users take of the resources that all share: `of_user` for one user, `of_all` for all together.
 * Besides, a user gets one more only while the user has less than is left free: one user alone has half of
 * all at most, two have a third each, and a user who comes later finds some still free. A user who wants more
 * starves nobody else, and is told so: in the log, in `status` and by `flush`.
 *
 * In a session of one user's own nothing is divided, and only the bounds of all hold. */

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

/* ---- users ---- */

enum {
    CT_USER_LOOKS_NAMESPACE = 16, /* looks charged to find a process of another pid namespace in /proc */
    CT_USER_LOOKS_MAPS = 256,     /* looks charged to read what a process has mapped */
    /* These bound what a batch looks up and writes at once for one user, beside the rows of calls. More is
     * for the next batch. */
    CT_USER_STARTS_MAX = 256,  /* processes, at their first batch */
    CT_USER_WRITES_MAX = 8192, /* rows about lanes, losses and open calls */
    CT_USER_SCANS_MAX = 65536, /* entries of directories whose counters are looked at */
};

/* Counts what a user wants and there is no room for. Calls of the user are then not recorded, or not by their
 * function. */
struct ct_shortage {
    uint32_t segments;  /* processes that wait */
    uint32_t lanes;     /* threads that wait */
    uint32_t functions; /* functions that are counted as one */
};

struct ct_user {
    uint32_t uid;
    /* The loop thread's; the entry itself is found and freed by it. */
    struct ct_holding loop_has;
    uint32_t segments_wait; /* in this look */
    uint64_t said_ns;       /* when the log named the user last */
    uint64_t unsaid;        /* complaints that the log left out since */
    /* The worker's. */
    struct ct_holding worker_has;
    uint64_t waiting;               /* slots published and not stored, in this batch */
    uint64_t not_waited_until_ns;   /* the user's threads held the others up: they are not waited for */
    struct ct_budget budget;        /* in this batch */
    uint32_t starts, writes, scans; /* in this batch */
    struct ct_shortage is_short;    /* as this batch found it */
    struct ct_user *next;
};

/* Count in this batch; true where it is still within the bounds of one. NULL has none. */
bool ct_user_may_start(struct ct_user *user);
bool ct_user_may_write(struct ct_user *user);
/* Returns how many of `wanted` entries may be looked at in this batch. */
uint32_t ct_user_may_scan(struct ct_user *user, uint32_t wanted);

struct ct_users {
    struct ct_user *first; /* one for each user who made a segment, until ct_users_finish() */
};

/* The entry of a user; NULL without memory. Loop thread. */
struct ct_user *ct_users_find(struct ct_users *users, uint32_t uid);
/* Every entry's looks begin anew. */
void ct_users_look_anew(struct ct_users *users, struct ct_holding *all);
/* Notes in the log what a user did, ten seconds apart. */
void ct_user_complain(struct ct_user *user, const char *what, const char *path);
void ct_users_finish(struct ct_users *users);

#endif
