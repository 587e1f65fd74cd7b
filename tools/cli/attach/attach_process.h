/* One attached process, from the first look at it until it is detached. Each failure is reported in one
 * line. */
#ifndef CT_ATTACH_PROCESS_H
#define CT_ATTACH_PROCESS_H

#include "made_slots.h"
#include "target.h"
#include "visitor.h"

enum ct_attachment_state {
    CT_ATTACHMENT_KNOWN, /* examined */
    CT_ATTACHMENT_ARMED, /* waiting for its next call to the driver */
    CT_ATTACHMENT_RECORDING,
    CT_ATTACHMENT_OVER, /* it has ended, or was detached */
    CT_ATTACHMENT_FAILED,
};

struct ct_attachment {
    const char *command; /* the command's name, for messages */
    struct ct_target target;
    struct ct_visitor visitor;
    struct ct_made_slots made;
    bool is_inline; /* slots are made for functions without one */
    enum ct_attachment_state state;
    int lock;                                   /* the lock on the process, which only one command can hold */
    uint64_t looked_ns, armed_ns, recording_ns; /* CLOCK_MONOTONIC; 0: not yet */
    bool is_waiting_said;
};

/* Examines a process. Returns false unless it is CT_TARGET_FINE. The reason is then in target.why, and has
 * not been reported. */
bool ct_attachment_open(struct ct_attachment *attachment, const char *command, pid_t pid,
                        const struct ct_library *library);
void ct_attachment_close(struct ct_attachment *attachment);
/* Reports why the process could not be opened. */
void ct_attachment_say_why(const struct ct_attachment *attachment);

/* Reports that it is recorded. */
void ct_attachment_print_recorded(const struct ct_attachment *attachment);

/* Puts the thunks in. Returns false after reporting an error. */
bool ct_attachment_arm(struct ct_attachment *attachment, const struct ct_visit *visit);
/* Checks for changes, and reports failures. Waits for a call up to `patience_ns` after arming. */
void ct_attachment_step(struct ct_attachment *attachment, uint64_t patience_ns);
/* Has the hook undo all changes, or removes the thunks. Returns false after reporting an error. */
bool ct_attachment_leave(struct ct_attachment *attachment);
/* Returns whether the process records because of a visit that this command or another may end. */
bool ct_attachment_records(const struct ct_attachment *attachment);
/* Has the daemon store the recorded calls. Returns false after reporting an error. */
bool ct_attach_flush(const char *command, int daemon);
/* Reports how many calls of the process are in the trace. */
void ct_attach_tell(const char *command, const struct ct_target *target, const char *database);
/* Prints a line about the findings and their duration. */
void ct_attachment_say(const struct ct_attachment *attachment);

#endif
