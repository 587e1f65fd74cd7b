/* Reports shortages of room to users: in the log when one begins and ends, in `status`, and in the answer to
 * `flush`. Loop thread. */
#ifndef CT_SHORTAGE_H
#define CT_SHORTAGE_H

#include "batch_report.h"
#include "watch.h"

/* Returns the shortage of the user `uid`, or of all users together if `all`. */
struct ct_shortage ct_shortage_of(const struct ct_report *report, const struct ct_watch *watch, uint32_t uid,
                                  bool all);
/* Writes a sentence. Returns false, and writes nothing, if nothing is missing. */
bool ct_shortage_say(const struct ct_shortage *is_short, char *text, size_t bytes);
/* Logs shortages that began or ended between two reports. `system`: name the users. */
void ct_shortage_note(const struct ct_report *report, const struct ct_report *last, bool system);

#endif
