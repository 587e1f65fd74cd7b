/* Finds the session's segments. Watches their folder, by default /dev/shm, and considers each file that
 * changes. Scans the whole folder when a hook reports a new segment, and once a second in case both fail.
 * Used only on the loop thread. */
#ifndef CT_WATCH_H
#define CT_WATCH_H

#include "shm_process.h"

#include <uv.h>

struct ct_watch;

/* `dir` stays the caller's. If `system`, finds all users' segments that were made for the system's session.
 * Otherwise, finds the segments of `uid`. `on_process` receives each new process and owns it, unless it
 * returns a reason to refuse it. Returns 0 or a libuv error. */
int ct_watch_create(uv_loop_t *loop, const char *dir, uint32_t uid, const char *session, bool system,
                    const char *(*on_process)(struct ct_shm_process *process, void *data), void *data,
                    struct ct_watch **watch);
/* Returns the number of files with a segment's name that were not a segment, or not a segment of the process
 * in the name. */
uint64_t ct_watch_refused(const struct ct_watch *watch);
/* Return the number of processes waiting for descriptors or mappings: of all users, or of one user of the
 * system's session. */
uint32_t ct_watch_waiting(const struct ct_watch *watch);
uint32_t ct_watch_waiting_of(const struct ct_watch *watch, uint32_t uid);
/* Scans the directory now. Returns false if there is no descriptor or memory for reading it. */
bool ct_watch_scan(struct ct_watch *watch);
/* Call when a process has been closed. Frees its name, and its place in the user's share. */
void ct_watch_forget(struct ct_watch *watch, const char *path, struct ct_user *user);
void ct_watch_destroy(struct ct_watch *watch);

#endif
