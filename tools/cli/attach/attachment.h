/* A single process of an attach command. */
#ifndef CT_ATTACHMENT_H
#define CT_ATTACHMENT_H

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
    uint64_t alone_ns;       /* when the area was last armed after a call that was left alone */
    uint64_t alone_pause_ns; /* how long it then leaves further calls alone without examining them */
    const char *alone_why, *later_why; /* of that call, and of the one that asks now; NULL: none */
    uint64_t taking_ns;                /* since when a thread is loading the hook; 0: none is */
    uint32_t rearms;                   /* after calls that were not answered in time */
    bool was_answered;                 /* a thread has asked, and the command has answered */
    bool is_waiting_said;
};

#endif
