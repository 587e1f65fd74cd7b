#include "user.h"

#include "clock.h"
#include "log.h"

#include <stdlib.h>

/* ---- shares ---- */

const struct ct_share_bound ct_share_bounds[CT_SHARED_COUNT] = {
    [CT_SHARED_SEGMENTS] = { 2048, 15000 }, [CT_SHARED_REFUSED] = { 4096, 16384 },
    [CT_SHARED_LOOKS] = { 4096, 16384 },    [CT_SHARED_CLIENTS] = { 64, 512 },
    [CT_SHARED_LANES] = { 16384, 49152 },   [CT_SHARED_FUNCTIONS] = { 262144, 786432 },
    [CT_SHARED_NAMES] = { 8192, 32768 },
};

bool ct_share_has_room(const struct ct_holding *all, const struct ct_holding *user, enum ct_shared what,
                       uint32_t of_all)
{
    const struct ct_share_bound *bound = &ct_share_bounds[what];
    const uint32_t most = of_all && of_all < bound->of_all ? of_all : bound->of_all;
    if (all->has[what] >= most)
        return false;
    return !user || (user->has[what] < bound->of_user && user->has[what] < most - all->has[what]);
}

bool ct_share_take(struct ct_holding *all, struct ct_holding *user, enum ct_shared what, uint32_t of_all)
{
    if (!ct_share_has_room(all, user, what, of_all))
        return false;
    all->has[what]++;
    if (user)
        user->has[what]++;
    return true;
}

void ct_share_give(struct ct_holding *all, struct ct_holding *user, enum ct_shared what, uint32_t count)
{
    all->has[what] -= count;
    if (user)
        user->has[what] -= count;
}

/* ---- users ---- */

struct ct_user *ct_users_find(struct ct_users *users, uint32_t uid)
{
    for (struct ct_user *user = users->first; user; user = user->next) {
        if (user->uid == uid)
            return user;
    }
    struct ct_user *user = calloc(1, sizeof(*user));
    if (user) {
        *user = (struct ct_user){ .uid = uid, .next = users->first };
        users->first = user;
    }
    return user;
}

void ct_users_look_anew(struct ct_users *users, struct ct_holding *all)
{
    for (struct ct_user *user = users->first; user; user = user->next) {
        user->segments_wait = 0;
        user->loop_has.has[CT_SHARED_LOOKS] = 0;
    }
    all->has[CT_SHARED_LOOKS] = 0;
}

bool ct_user_may_start(struct ct_user *user)
{
    if (user)
        user->budget.is_held |= user->starts >= CT_USER_STARTS_MAX;
    return !user || user->starts++ < CT_USER_STARTS_MAX;
}

bool ct_user_may_write(struct ct_user *user)
{
    if (user)
        user->budget.is_held |= user->writes >= CT_USER_WRITES_MAX;
    return !user || user->writes++ < CT_USER_WRITES_MAX;
}

uint32_t ct_user_may_scan(struct ct_user *user, uint32_t wanted)
{
    if (!user)
        return wanted;
    const uint32_t left = CT_USER_SCANS_MAX - user->scans, may = wanted < left ? wanted : left;
    user->scans += may;
    user->budget.is_held |= may < wanted;
    return may;
}

/* Limits the message rate, because a user who keeps creating segments could otherwise fill the log. */
void ct_user_complain(struct ct_user *user, const char *what, const char *path)
{
    const uint64_t interval_ns = 10000000000;
    const uint64_t now_ns = ct_monotonic_ns();
    if (user->said_ns && now_ns - user->said_ns < interval_ns) {
        user->unsaid++;
        return;
    }
    if (user->unsaid)
        ct_log(CT_LOG_segment_refused,
               "segment %s of user %u is not read: %s (%llu similar messages about this user suppressed)",
               path, user->uid, what, (unsigned long long)user->unsaid);
    else
        ct_log(CT_LOG_segment_refused, "segment %s of user %u is not read: %s", path, user->uid, what);
    user->said_ns = now_ns;
    user->unsaid = 0;
}

void ct_users_finish(struct ct_users *users)
{
    while (users->first) {
        struct ct_user *gone = users->first;
        users->first = gone->next;
        free(gone);
    }
}
