/* The set of processes to which one `cudatrace attach` command attaches. */
#ifndef CT_ATTACH_SET_H
#define CT_ATTACH_SET_H

#include "attach_process.h"

#include "processes.h"
#include "selecting.h"
#include "session_choice.h"

struct ct_attach_set {
    const char *command; /* the command's name, for messages */
    struct ct_library hook;
    struct ct_visit visit;
    uint64_t patience_ns;    /* how long to wait for a process's next CUDA call */
    bool verbose, is_inline; /* also make slots for functions that have none */
    struct ct_attachment **attachments;
    size_t count, room;
    struct ct_target *recorded; /* processes that were recorded, already closed */
    size_t recorded_count, recorded_room;
    bool has_failed;
    struct ct_processes processes; /* all processes on the machine */
};

/* Sets the session that the processes record for, and selects the calls that they record. */
void ct_attach_set_request(struct ct_attach_set *set, const struct ct_session_choice *choice,
                           const struct ct_selecting *selecting);
/* Adds a process that the user named. Returns false after reporting why it cannot be attached to. */
bool ct_attach_set_add(struct ct_attach_set *set, pid_t pid);
/* Selects which processes on the machine a scan adds. */
enum ct_attach_which {
    CT_ATTACH_NONE, /* add none, only note which processes exist */
    CT_ATTACH_ALL,  /* add all that have loaded the driver, and report why others cannot be attached to */
};
/* Examines processes that are new or whose memory has grown or shrunk since the last scan. */
void ct_attach_set_scan(struct ct_attach_set *set, enum ct_attach_which which);

/* Arms processes that were added since the last call. */
void ct_attach_set_arm(struct ct_attach_set *set);
/* Checks the state of each process, and reports changes. */
void ct_attach_set_step(struct ct_attach_set *set);
void ct_attach_set_leave(struct ct_attach_set *set);
/* Reports how many calls of each recorded process are in the trace. */
void ct_attach_set_tell(const struct ct_attach_set *set, const char *database);
size_t ct_attach_set_in(const struct ct_attach_set *set, enum ct_attachment_state state);
void ct_attach_set_finish(struct ct_attach_set *set);

#endif
