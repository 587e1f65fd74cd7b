/* The users whose processes the system daemon traces, and their shares of common resources. The kernel
 * reports each process's user. A user who exceeds a share does not starve other users. */
#ifndef CT_USER_H
#define CT_USER_H

#include "merge.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- shares ----
 *
 * Limits the use of common resources: `of_user` applies to each user, and `of_all` to all users together. In
 * addition, a user may take another unit of a resource only while holding fewer units than are still free. A
 * single user can thus hold at most half of a resource, and two users at most a third each, so part of it is
 * left for another user. A shortage is reported in the log, in `status` and by `flush`.
 *
 * In a single user's session, only `of_all` applies. */

/* The loop thread owns the first four resources, and the worker owns the others. */
enum ct_shared {
    CT_SHARED_SEGMENTS,  /* segments open at once: two descriptors and two mappings each, four mappings after
                          * truncation */
    CT_SHARED_REFUSED,   /* names that are remembered because they have no valid segment */
    CT_SHARED_LOOKS,     /* files opened between two scans of the directory */
    CT_SHARED_CLIENTS,   /* connections */
    CT_SHARED_LANES,     /* lanes read at once: about 700 bytes each, and one mapping per 64 lanes of a
                          * segment */
    CT_SHARED_FUNCTIONS, /* functions of live processes that are counted separately: 40 bytes each */
    CT_SHARED_NAMES,     /* functions that are new to the trace since the daemon started */
    CT_SHARED_COUNT
};

struct ct_share_bound {
    uint32_t of_user, of_all;
};
extern const struct ct_share_bound ct_share_bounds[CT_SHARED_COUNT];

/* The resources held by one user, or by all users together. */
struct ct_holding {
    uint32_t has[CT_SHARED_COUNT];
};

/* Takes one more unit for `user`, which is NULL in a single user's session. A nonzero `of_all` replaces the
 * limit in ct_share_bounds with a lower one for all users together. If a limit is reached, returns false and
 * takes nothing. */
bool ct_share_take(struct ct_holding *all, struct ct_holding *user, enum ct_shared what, uint32_t of_all);
/* Returns whether ct_share_take() would succeed. */
bool ct_share_has_room(const struct ct_holding *all, const struct ct_holding *user, enum ct_shared what,
                       uint32_t of_all);
void ct_share_give(struct ct_holding *all, struct ct_holding *user, enum ct_shared what, uint32_t count);

/* ---- users ---- */

enum {
    CT_USER_LOOKS_NAMESPACE = 16, /* charge for finding a process in /proc that is in another pid namespace */
    CT_USER_LOOKS_MAPS = 256,     /* charge for reading a process's mappings */
    /* Limits on the lookups and writes that one batch makes for one user, apart from writing call rows.
     * Further work waits for the next batch. */
    CT_USER_STARTS_MAX = 256,  /* processes in their first batch */
    CT_USER_WRITES_MAX = 8192, /* rows about lanes, losses and open calls */
    CT_USER_SCANS_MAX = 65536, /* directory entries whose counters are read */
};

/* Counts a user's processes, threads and functions that exceed a share. The calls of such processes and
 * threads wait in shared memory, while calls to such functions are stored without the functions' names. */
struct ct_quota_report {
    uint32_t segments;  /* waiting processes */
    uint32_t lanes;     /* waiting threads */
    uint32_t functions; /* functions counted together as one */
};

struct ct_user {
    uint32_t uid;
    /* The following fields are owned by the loop thread, which also finds and frees the entry. */
    struct ct_holding loop_has;
    uint32_t segments_wait; /* in this scan */
    uint64_t said_ns;       /* time of the last log line about the user */
    uint64_t unsaid;        /* complaints suppressed since then */
    /* The remaining fields are owned by the worker. */
    struct ct_holding worker_has;
    uint64_t waiting;               /* slots that are published but not stored in this batch */
    uint64_t not_waited_until_ns;   /* until then, batches do not wait for this user, who delayed others */
    struct ct_budget budget;        /* in this batch */
    uint32_t starts, writes, scans; /* in this batch */
    struct ct_quota_report quota;   /* as found by this batch */
    struct ct_user *next;
};

/* Count one more process or row in this batch. Return true if the count is within its limit, or if `user` is
 * NULL. */
bool ct_user_may_start(struct ct_user *user);
bool ct_user_may_write(struct ct_user *user);
/* Returns how many of the `wanted` entries may be read in this batch. */
uint32_t ct_user_may_scan(struct ct_user *user, uint32_t wanted);

struct ct_users {
    struct ct_user *first; /* one entry for each user that created a segment, kept until ct_users_finish() */
};

/* Returns a user's entry, or NULL if out of memory. Call it only on the loop thread. */
struct ct_user *ct_users_find(struct ct_users *users, uint32_t uid);
/* Resets every user's counts of lookups and of waiting segments. */
void ct_users_look_anew(struct ct_users *users, struct ct_holding *all);
/* Logs a user's violation, at most once per ten seconds. */
void ct_user_complain(struct ct_user *user, const char *what, const char *path);
void ct_users_finish(struct ct_users *users);

#endif
