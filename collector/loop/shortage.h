/* Tells users what there is no room for: in the log when it begins and ends, in `status`, and by `flush`.
 * Loop thread. */
#ifndef CT_SHORTAGE_H
#define CT_SHORTAGE_H

#include "batch_report.h"
#include "watch.h"

/* Returns what the user `uid` has no room for; where `all`, what everybody together has none for. */
struct ct_shortage ct_shortage_of(const struct ct_report *report, const struct ct_watch *watch, uint32_t uid,
                                  bool all);
/* A sentence; false, with none, where nothing is missing. */
bool ct_shortage_say(const struct ct_shortage *is_short, char *text, size_t bytes);
/* Logs what began or ended between two reports. `system`: users are named. */
void ct_shortage_note(const struct ct_report *report, const struct ct_report *last, bool system);

#endif
