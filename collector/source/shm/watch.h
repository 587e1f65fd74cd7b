/* Finds the session's segments. Watches the folder of segments, by default /dev/shm, and considers each file
 * that changes. Scans the whole folder when a hook reports a new segment, and once a second in case both
 * methods fail. Used only on the loop thread. */
#ifndef CT_WATCH_H
#define CT_WATCH_H

#include "shm_process.h"

#include <uv.h>

struct ct_watch;

/* Receives a refused segment: the PID in its name, its owner, and the reason, which is never freed. */
typedef void ct_on_refused(int32_t pid, uint32_t uid, const char *reason, void *data);

/* The caller keeps ownership of `dir`. If `system` is set, finds all users' segments for the system session,
 * and otherwise only the segments of user `uid`. `on_process` receives each new process, and owns it unless
 * it returns a reason for refusing the process. Returns 0 or a libuv error. */
int ct_watch_create(uv_loop_t *loop, const char *dir, uint32_t uid, const char *session, bool system,
                    const char *(*on_process)(struct ct_shm_process *process, void *data),
                    ct_on_refused *on_refused, void *data, struct ct_watch **watch);
/* Returns how many files with a segment name were refused, because they were not segments or named a
 * different process. */
uint64_t ct_watch_refused(const struct ct_watch *watch);
/* Returns how many files with a segment name did not belong to the user in their name in the last scan. They
 * are not refused, but ignored. */
uint32_t ct_watch_ignored(const struct ct_watch *watch);
/* Return how many processes are waiting for descriptors or mappings, for all users or for one user of the
 * system session. */
uint32_t ct_watch_waiting(const struct ct_watch *watch);
uint32_t ct_watch_waiting_of(const struct ct_watch *watch, uint32_t uid);
/* Scans the directory now. Returns false if there is no descriptor or memory for that. */
bool ct_watch_scan(struct ct_watch *watch);
/* Call when a process has been closed. Frees the entry for its file, and its place in the user's share. */
void ct_watch_forget(struct ct_watch *watch, const char *path, struct ct_user *user);
void ct_watch_destroy(struct ct_watch *watch);

#endif
