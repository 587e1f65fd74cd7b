/* The session: its control segment, held by lock, and the thread that waits for the doorbell. */
#ifndef CT_SESSION_OF_COLLECTOR_H
#define CT_SESSION_OF_COLLECTOR_H

#include "control.h"
#include "cut_guard.h"
#include "message.h"
#include "session_names.h"

#include <uv.h>

struct ct_session {
    char name[CT_SESSION_MAX + 1];
    const char *dir; /* the folder of its files; the caller's */
    uint32_t uid;    /* in their names */
    int fd;
    char path[CT_NAME_BYTES];
    struct ct_control *control;
    struct ct_guard *guard;        /* guards `control`: whoever may write it may cut it short */
    struct ct_selection selection; /* as published last: what `control` says by now is not read again */
    bool system;
    int bell; /* the system's */
    char bell_path[CT_NAME_BYTES];
    ino_t bell_inode;
    uv_poll_t bell_poll;
    uv_timer_t bell_pause;
    uv_thread_t doorbell_thread;
    uv_async_t doorbell; /* its callback is on_doorbell's */
    uv_sem_t heard;      /* posted when the loop has heard: a doorbell that is jammed rings once a turn */
    _Atomic bool closing;
    void (*on_doorbell)(void *data);
    void *data;
};

enum { CT_CLOCK_CHOSEN = -1 };

/* Takes the session, or says in `message` who has it. `clock` is an enum ct_clock_kind, or CT_CLOCK_CHOSEN; a
 * session that a killed daemon left keeps the clock that its processes have, and is not taken when another
 * was asked for. `system`: for the processes of all users. `trace`: the identity of what is written. `dir`
 * stays the caller's. 0 or -1. */
int ct_session_open(struct ct_session *session, const char *dir, const char *name, bool system,
                    uint64_t trace, uint64_t ring_bytes, int clock, char message[CT_MESSAGE_BYTES]);
/* Calls `on_doorbell` on the loop's thread whenever a producer rings. 0 or a libuv error. */
int ct_session_listen(struct ct_session *session, uv_loop_t *loop, void (*on_doorbell)(void *data),
                      void *data);
/* Returns what processes are to record, as published last; everything at first. */
struct ct_selection ct_session_selection(const struct ct_session *session);
/* Publishes it anew: "layers=L calls=P sample=N", any of them; what is not named stays as it is. False, with
 * a sentence in `problem`, when one of them is no selection; then nothing changes. */
bool ct_session_select(struct ct_session *session, const char *wishes, char *problem, size_t bytes);
/* Returns whether the session's files still have their names. Somebody may remove them, as systemd-logind
 * does with all files of a user at the last logout (RemoveIPC=yes). */
bool ct_session_is_named(const struct ct_session *session);
/* Makes them anew, the mapping of `control` staying where it is: hooks that have the old one mapped are to
 * let go. */
enum ct_session_renewal { CT_RENEWED, CT_NOT_RENEWED, CT_TAKEN }; /* by another daemon */
enum ct_session_renewal ct_session_renew(struct ct_session *session);
/* No hook takes the session up from here on; it stays ours until it is closed. */
void ct_session_hide(struct ct_session *session);
void ct_session_close(struct ct_session *session);

#endif
