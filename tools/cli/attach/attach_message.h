/* Messages of the attach commands about a process. Each is one line. */
#ifndef CT_ATTACH_MESSAGE_H
#define CT_ATTACH_MESSAGE_H

#include "attachment.h"

/* Prints a message about the process. The process is the subject of the given clause, unless the clause
 * begins with a colon. */
void ct_attachment_print(const struct ct_attachment *attachment, const char *clause);
/* Reports why the process could not be opened. */
void ct_attachment_say_why(const struct ct_attachment *attachment);
/* Reports that the process is being recorded. */
void ct_attachment_print_recorded(const struct ct_attachment *attachment);
/* Prints what was found in the process, and how long each step took. */
void ct_attachment_say(const struct ct_attachment *attachment);

/* The next five report a message and set the state. The first two return false. */
bool ct_attachment_fail(struct ct_attachment *attachment, const char *why);
/* Reports why a step failed with -errno. A failed step has left the process unchanged. */
bool ct_attachment_fail_with(struct ct_attachment *attachment, int error);
/* Reports why the hook, or the visit's code, has answered a visit with anything but CT_VISIT_DONE. */
void ct_attachment_fail_answered(struct ct_attachment *attachment);
/* Reports that all calls had to be left alone. */
void ct_attachment_fail_alone(struct ct_attachment *attachment);
/* Reports that the process has exited or executed another program. */
void ct_attachment_end(struct ct_attachment *attachment);

#endif
