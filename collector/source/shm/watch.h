/* Finding the session's segments: /dev/shm is watched, and read when it changed, when a hook says that it
 * made one, and now and then as the net below both. Loop thread. */
#ifndef CT_WATCH_H
#define CT_WATCH_H

#include "shm_process.h"

#include <uv.h>

struct ct_watch;

/* `dir` stays the caller's. `system`: the segments of all users that were made for the system's session;
 * otherwise those of `uid`. `on_process` gets each new process and owns it, unless it returns a reason to
 * refuse it. 0 or a libuv error. */
int ct_watch_create(uv_loop_t *loop, const char *dir, uint32_t uid, const char *session, bool system,
                    const char *(*on_process)(struct ct_shm_process *process, void *data), void *data,
                    struct ct_watch **watch);
/* Counts the files with a segment's name that were no segment, or not their process's. */
uint64_t ct_watch_refused(const struct ct_watch *watch);
/* Count the processes that wait, since there are no descriptors or mappings for them: of all users, or of one
 * user of the system's session. */
uint32_t ct_watch_waiting(const struct ct_watch *watch);
uint32_t ct_watch_waiting_of(const struct ct_watch *watch, uint32_t uid);
/* Reads the directory now. False when there is no descriptor or memory to read it with. */
bool ct_watch_scan(struct ct_watch *watch);
/* A process was closed: its name may be forgotten, and its user may have another. */
void ct_watch_forget(struct ct_watch *watch, const char *path, struct ct_user *user);
void ct_watch_destroy(struct ct_watch *watch);

#endif
