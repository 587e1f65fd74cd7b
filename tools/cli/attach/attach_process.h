/* Handles a single process of an attach command, from the examination of the process until it is detached.
 * Each failure is reported in one line. */
#ifndef CT_ATTACH_PROCESS_H
#define CT_ATTACH_PROCESS_H

#include "attachment.h"

/* Examines a process. If the process cannot be attached to, returns false and leaves the reason in
 * target.why, without reporting it. */
bool ct_attachment_open(struct ct_attachment *attachment, const char *command, pid_t pid,
                        const struct ct_library *library);
void ct_attachment_close(struct ct_attachment *attachment);
/* Installs the thunks. Returns false after reporting an error. */
bool ct_attachment_arm(struct ct_attachment *attachment, const struct ct_visit *visit);
/* Checks whether the attachment's state has changed, and reports failures. Gives up if no call is made within
 * `patience_ns` of arming. */
void ct_attachment_step(struct ct_attachment *attachment, uint64_t patience_ns);
/* Returns until when to wait for locks, if the leaving begins now. */
uint64_t ct_attachment_deadline(void);
/* Makes the hook undo all of its changes or, if no call has entered a thunk yet, removes the thunks. If
 * another command holds the process's lock, waits for it until `until_ns`, which is common to all processes
 * of a command. Returns false after reporting an error. */
bool ct_attachment_leave(struct ct_attachment *attachment, uint64_t until_ns);
/* Returns whether a visit has made the process record its calls. This command or another may end the
 * recording. */
bool ct_attachment_records(const struct ct_attachment *attachment);

#endif
