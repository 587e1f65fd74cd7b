/* Informs users that there is no room for more of their processes, threads or functions. A shortage is
 * reported in `status` and in the answer to `flush`, and is logged when it begins and ends. Used only on the
 * loop thread. */
#ifndef CT_QUOTA_REPORT_H
#define CT_QUOTA_REPORT_H

#include "batch_report.h"
#include "watch.h"

/* Returns the shortage of user `uid`, or of all users together if `all` is set. */
struct ct_quota_report ct_quota_report_of(const struct ct_report *report, const struct ct_watch *watch,
                                          uint32_t uid, bool all);
/* Writes a sentence about the shortage. If there is no shortage, returns false and writes nothing. */
bool ct_quota_report_say(const struct ct_quota_report *quota, char *text, size_t bytes);
/* Logs the shortages that began or ended between two reports. Names the users if `system` is set. */
void ct_quota_report_note(const struct ct_report *report, const struct ct_report *last, bool system);

#endif
