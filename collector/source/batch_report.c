#include "batch_report.h"

void ct_report_hold(struct ct_report *report, uint32_t uid)
{
    if (ct_report_holds(report, uid, false))
        return;
    if (report->held_count < CT_HELD_MAX)
        report->held[report->held_count] = uid;
    report->held_count++;
}

bool ct_report_holds(const struct ct_report *report, uint32_t uid, bool all)
{
    for (uint32_t i = 0; i < report->held_count && i < CT_HELD_MAX; i++) {
        if (report->held[i] == uid)
            return true;
    }
    return report->held_count > (all ? 0 : CT_HELD_MAX);
}

/* Users in the earlier report stay marked as held, even if the later batch has stored all of their calls. The
 * next report corrects this. */
void ct_report_add(struct ct_report *report, const struct ct_report *earlier)
{
    report->rows += earlier->rows;
    report->has_gone_on |= earlier->has_gone_on;
    if (earlier->flushed_ns > report->flushed_ns)
        report->flushed_ns = earlier->flushed_ns;
    for (uint32_t i = 0; i < earlier->held_count && i < CT_HELD_MAX; i++)
        ct_report_hold(report, earlier->held[i]);
    if (earlier->held_count > CT_HELD_MAX)
        report->held_count = earlier->held_count;
}
