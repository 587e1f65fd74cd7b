/* The session: its locked control segment, and the thread that waits for the doorbell. */
#ifndef CT_SESSION_OF_COLLECTOR_H
#define CT_SESSION_OF_COLLECTOR_H

#include "control.h"
#include "cut_guard.h"
#include "message.h"
#include "session_names.h"

#include <uv.h>

struct ct_session {
    char name[CT_SESSION_MAX + 1];
    const char *dir; /* the folder of the session's files; owned by the caller */
    uint32_t uid;    /* part of the files' names */
    int fd;
    char path[CT_NAME_BYTES], socket_path[CT_NAME_BYTES];
    struct ct_control *control;
    struct ct_guard *guard;        /* guards `control`, which any process with write access can truncate */
    struct ct_selection selection; /* as last published; `control` is never re-read */
    bool is_clock_doubted;         /* the kernel no longer trusts the session's clock */
    bool system;
    int bell; /* only in the system session */
    char bell_path[CT_NAME_BYTES];
    ino_t bell_inode;
    uv_poll_t bell_poll;
    uv_timer_t bell_pause;
    uv_thread_t doorbell_thread;
    uv_async_t doorbell; /* runs on_doorbell on the loop thread */
    uv_sem_t heard; /* posted when the loop has seen the ring, so that a constantly ringing doorbell wakes the
                     * loop once per iteration */
    _Atomic bool closing;
    void (*on_doorbell)(void *data);
    void *data;
};

enum { CT_CLOCK_CHOSEN = -1 };

/* Takes the session. Returns 0, or -1 with a sentence in `message`, which names the session's current owner
 * if there is one. `clock` is an enum ct_clock_kind, or CT_CLOCK_CHOSEN. A session left behind by a killed
 * daemon keeps its clock, and is not taken if a different clock is requested. If `system` is set, the session
 * is for the processes of all users. `trace` identifies the trace being written. The caller keeps ownership
 * of `dir`. Waits for a daemon of the session that is stopping or exiting (control_lock.h), unless the pipe
 * `starter` is closed. */
int ct_session_open(struct ct_session *session, const char *dir, const char *name, bool system,
                    uint64_t trace, uint64_t ring_bytes, int clock, int starter,
                    char message[CT_MESSAGE_BYTES]);
/* Calls `on_doorbell` on the loop thread whenever a producer rings. Returns 0 or a libuv error. */
int ct_session_listen(struct ct_session *session, uv_loop_t *loop, void (*on_doorbell)(void *data),
                      void *data);
/* Returns the last published selection of calls to record. Initially, all calls are selected. */
struct ct_selection ct_session_selection(const struct ct_session *session);
/* Changes and publishes the selection. `settings` is "layers=L calls=P sample=N" or a part of it. Omitted
 * settings stay unchanged. If any part is invalid, returns false with a sentence in `problem` and changes
 * nothing. */
bool ct_session_select(struct ct_session *session, const char *settings, char *problem, size_t bytes);
/* Returns whether the session's files still exist under their names. systemd-logind, for example, removes all
 * of a user's files at the last logout (RemoveIPC=yes). */
bool ct_session_is_named(const struct ct_session *session);
/* Recreates the files. The mapping of `control` keeps its address. Hooks that have the old segment mapped
 * must stop using it. */
enum ct_session_renewal { CT_RENEWED, CT_NOT_RENEWED, CT_TAKEN }; /* CT_TAKEN: by another daemon */
enum ct_session_renewal ct_session_renew(struct ct_session *session);
/* Checks whether the kernel still trusts the processor's counter, which it may stop trusting at any time.
 * Recording continues with the counter even then, and because anchors are still taken, times remain as
 * accurate as the anchors. Call only if the options do not choose the clock. */
void ct_session_check_clock(struct ct_session *session);
/* Prevents further hooks from joining the session, which this daemon keeps until ct_session_close(). */
void ct_session_hide(struct ct_session *session);
void ct_session_close(struct ct_session *session);

#endif
