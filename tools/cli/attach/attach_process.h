/* Handles a single process of an attach command, from the examination of the process until it is detached.
 * Each failure is reported in one line. */
#ifndef CT_ATTACH_PROCESS_H
#define CT_ATTACH_PROCESS_H

#include "made_slots.h"
#include "target.h"
#include "visitor.h"

enum ct_attachment_state {
    CT_ATTACHMENT_KNOWN, /* examined */
    CT_ATTACHMENT_ARMED, /* waiting for the process's next call to the driver */
    CT_ATTACHMENT_RECORDING,
    CT_ATTACHMENT_OVER, /* the process has exited or was detached */
    CT_ATTACHMENT_FAILED,
};

struct ct_attachment {
    const char *command; /* the command's name, for messages */
    struct ct_target target;
    struct ct_visitor visitor;
    struct ct_made_slots made;
    bool is_inline; /* also make slots for functions that have none */
    enum ct_attachment_state state;
    int lock;                                   /* the lock on the process, which only one command can hold;
                                                 * -1: none */
    uint64_t looked_ns, armed_ns, recording_ns; /* CLOCK_MONOTONIC; 0: not yet */
    uint64_t proved_ns;                         /* when the process last proved to be the same */
    bool is_waiting_said;
};

/* Examines a process. If the process cannot be attached to, returns false and leaves the reason in
 * target.why, without reporting it. */
bool ct_attachment_open(struct ct_attachment *attachment, const char *command, pid_t pid,
                        const struct ct_library *library);
void ct_attachment_close(struct ct_attachment *attachment);
/* Reports why the process could not be opened. */
void ct_attachment_say_why(const struct ct_attachment *attachment);

/* Reports that the process is being recorded. */
void ct_attachment_print_recorded(const struct ct_attachment *attachment);

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
/* Prints what was found in the process, and how long each step took. */
void ct_attachment_say(const struct ct_attachment *attachment);

#endif
