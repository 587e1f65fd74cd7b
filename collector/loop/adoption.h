/* The processes of the session on the loop's side: found, followed to their end, handed to the worker, and
 * closed when they come back. Loop thread. */
#ifndef CT_ADOPTION_H
#define CT_ADOPTION_H

#include "followed.h"
#include "shm_source.h"
#include "watch.h"

struct ct_session;

enum { CT_LEFT_NAMED_MAX = 64, CT_LEFT_BYTES = 16 + 12 * CT_LEFT_NAMED_MAX };

struct ct_adoption {
    struct ct_shm shm; /* a source for the worker */
    struct ct_watch *watch;
    struct ct_followed followed;
    uint32_t segments_seen;
    uint64_t detached;        /* processes that broke a rule */
    char left[CT_LEFT_BYTES]; /* "COUNT PID …", once it has ended: processes that run on, the first of them
                                 named */
    void (*on_found)(void *data);
    void *data;
};

/* `dir`, of the segments, and `control` stay the caller's. `on_found` is called for each process that is new,
 * `on_end` for each that the loop finds to have ended. */
void ct_adoption_init(struct ct_adoption *adoption, uv_loop_t *loop, const char *dir,
                      struct ct_control *control, void (*on_found)(void *data), void (*on_end)(void *data),
                      void *data);
/* 0 or a libuv error. */
int ct_adoption_start(struct ct_adoption *adoption, const struct ct_session *session, bool system);
/* Looks for new segments; what the hooks have counted before the look is known after it. */
void ct_adoption_look(struct ct_adoption *adoption);
/* The same if a hook has counted one. */
void ct_adoption_look_for_counted(struct ct_adoption *adoption);
/* Finds what a flush must not miss: segments that were just made, processes that just ended. */
void ct_adoption_look_around(struct ct_adoption *adoption);
/* Closes those that came back; whether there were any. */
bool ct_adoption_close_gone(struct ct_adoption *adoption);
/* The worker has ended. What is left is written to `ledger`, NULL where it cannot be, and closed; what was to
 * be read yet, as where `cut_short`, stays in shared memory for the next daemon. */
void ct_adoption_end(struct ct_adoption *adoption, struct ct_ledger *ledger, bool cut_short);
void ct_adoption_finish(struct ct_adoption *adoption);

#endif
