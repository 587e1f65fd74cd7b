#include "quota_report.h"

#include "log.h"

#include <stdio.h>

static const struct ct_quota_report *find(const struct ct_report *report, uint32_t uid)
{
    for (uint32_t i = 0; i < report->short_count && i < CT_HELD_MAX; i++) {
        if (report->short_users[i].uid == uid)
            return &report->short_users[i].quota;
    }
    return NULL;
}

struct ct_quota_report ct_quota_report_of(const struct ct_report *report, const struct ct_watch *watch,
                                          uint32_t uid, bool all)
{
    const struct ct_quota_report *his = all ? &report->quota : find(report, uid);
    struct ct_quota_report quota = his ? *his : (struct ct_quota_report){ 0 };
    quota.segments = all ? ct_watch_waiting(watch) : ct_watch_waiting_of(watch, uid);
    return quota;
}

bool ct_quota_report_say(const struct ct_quota_report *quota, char *text, size_t bytes)
{
    if ((quota->segments | quota->lanes) == 0)
        return false;
    snprintf(text, bytes,
             "calls of %u processes and %u threads wait, because the daemon has no room for more at once: "
             "these calls stay in shared memory, and are only counted once it is full",
             quota->segments, quota->lanes);
    return true;
}

static void note(const struct ct_quota_report *now, const struct ct_quota_report *before, const char *whose)
{
    const bool any = now->lanes > 0, had_any = before && before->lanes > 0;
    if (any && !had_any)
        ct_log(CT_LOG_share_short, "%u threads%s wait for others to end: there is no room for more at once",
               now->lanes, whose);
    if (now->functions > 0 && !(before && before->functions > 0))
        ct_log(CT_LOG_share_short,
               "%u functions%s are counted as one, \"(other functions)\": there is no room for more names",
               now->functions, whose);
}

void ct_quota_report_note(const struct ct_report *report, const struct ct_report *last, bool system)
{
    char whose[40] = "";
    if (!system)
        note(&report->quota, &last->quota, whose);
    for (uint32_t i = 0; system && i < report->short_count && i < CT_HELD_MAX; i++) {
        snprintf(whose, sizeof(whose), " of user %u", report->short_users[i].uid);
        note(&report->short_users[i].quota, find(last, report->short_users[i].uid), whose);
    }
    if (last->quota.lanes > 0 && report->quota.lanes == 0)
        ct_log(CT_LOG_share_back, "no threads wait for room any more");
}
