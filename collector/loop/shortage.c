#include "shortage.h"

#include "log.h"

#include <stdio.h>

static const struct ct_shortage *find(const struct ct_report *report, uint32_t uid)
{
    for (uint32_t i = 0; i < report->short_count && i < CT_HELD_MAX; i++) {
        if (report->short_users[i].uid == uid)
            return &report->short_users[i].is_short;
    }
    return NULL;
}

struct ct_shortage ct_shortage_of(const struct ct_report *report, const struct ct_watch *watch, uint32_t uid,
                                  bool all)
{
    const struct ct_shortage *his = all ? &report->is_short : find(report, uid);
    struct ct_shortage is_short = his ? *his : (struct ct_shortage){ 0 };
    is_short.segments = all ? ct_watch_waiting(watch) : ct_watch_waiting_of(watch, uid);
    return is_short;
}

bool ct_shortage_say(const struct ct_shortage *is_short, char *text, size_t bytes)
{
    if ((is_short->segments | is_short->lanes) == 0)
        return false;
    snprintf(text, bytes,
             "calls of %u processes and %u threads wait, because the daemon has no room for more at once: "
             "these calls stay in shared memory, and are only counted once it is full",
             is_short->segments, is_short->lanes);
    return true;
}

static void note(const struct ct_shortage *now, const struct ct_shortage *before, const char *whose)
{
    const bool is_short = now->lanes > 0, was_short = before && before->lanes > 0;
    if (is_short && !was_short)
        ct_log(CT_LOG_share_short, "%u threads%s wait for others to end: there is no room for more at once",
               now->lanes, whose);
    if (now->functions > 0 && !(before && before->functions > 0))
        ct_log(CT_LOG_share_short,
               "%u functions%s are counted as one, \"(other functions)\": there is no room for more names",
               now->functions, whose);
}

void ct_shortage_note(const struct ct_report *report, const struct ct_report *last, bool system)
{
    char whose[40] = "";
    if (!system)
        note(&report->is_short, &last->is_short, whose);
    for (uint32_t i = 0; system && i < report->short_count && i < CT_HELD_MAX; i++) {
        snprintf(whose, sizeof(whose), " of user %u", report->short_users[i].uid);
        note(&report->short_users[i].is_short, find(last, report->short_users[i].uid), whose);
    }
    if (last->is_short.lanes > 0 && report->is_short.lanes == 0)
        ct_log(CT_LOG_share_back, "no threads wait for room any more");
}
