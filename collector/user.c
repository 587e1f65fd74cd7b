#include "user.h"

#include "clock.h"
#include "log.h"

#include <stdlib.h>

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

void ct_users_look_anew(struct ct_users *users)
{
    for (struct ct_user *user = users->first; user; user = user->next)
        user->looks = 0;
}

/* A user who makes segments without end would else fill the log. */
void ct_user_complain(struct ct_user *user, const char *what, const char *path)
{
    const uint64_t interval_ns = 10000000000;
    const uint64_t now_ns = ct_monotonic_ns();
    if (user->said_ns && now_ns - user->said_ns < interval_ns) {
        user->unsaid++;
        return;
    }
    if (user->unsaid)
        ct_log(CT_LOG_segment_refused, "segment %s of user %u is left alone: %s (and %llu others of his)",
               path, user->uid, what, (unsigned long long)user->unsaid);
    else
        ct_log(CT_LOG_segment_refused, "segment %s of user %u is left alone: %s", path, user->uid, what);
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
