/* Reports to the daemon that this process has no segment, and how many calls it makes
 * (proto/unrecorded_report.h). */
#ifndef CT_UNRECORDED_H
#define CT_UNRECORDED_H

#include "compiler.h"
#include "find_daemon.h"
#include "unrecorded_report.h"

#include <stdatomic.h>
#include <stdbool.h>

extern CT_LOCAL _Atomic bool ct_is_unrecorded;

/* Returns the cause if a file in the session's folder was refused with this errno. */
enum ct_unrecorded_cause ct_unrecorded_cause_of(int error);
/* Reports the process to the session's daemon that belongs to user `uid`. `error` is an errno. Returns false
 * if there is no such daemon. Requires the process lock and permission for system calls. */
bool ct_unrecorded_report(const struct ct_session *session, uint32_t uid, enum ct_unrecorded_cause cause,
                          int error, uint64_t exec_ns);
/* Counts a call made without a segment. The last report contains the count. */
void ct_unrecorded_count(void);
/* Sends the last report, because the process has a segment now, or exits. */
void ct_unrecorded_end(void);
/* Sends no more reports, because a filter forbids that. */
void ct_unrecorded_forbid(void);
/* In the child of a fork. */
void ct_unrecorded_forget(void);

#endif
