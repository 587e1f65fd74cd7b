#include "share.h"

#include <stddef.h>

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
