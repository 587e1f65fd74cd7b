/* Finding the session's segments: /dev/shm is watched, and read when it changed, when a hook says that it
 * made one, and now and then as the net below both. Loop thread. */
#ifndef CT_WATCH_H
#define CT_WATCH_H

#include "process.h"

#include <uv.h>

struct ct_watch;

/* `dir` stays the caller's. `on_process` gets each new process and owns it. 0 or a libuv error. */
int ct_watch_create(uv_loop_t *loop, const char *dir, uint32_t uid, const char *session,
                    void (*on_process)(struct ct_process *process, void *data), void *data,
                    struct ct_watch **watch);
/* Reads the directory now. */
void ct_watch_scan(struct ct_watch *watch);
/* A process was closed: its name may be forgotten. */
void ct_watch_forget(struct ct_watch *watch, const char *path);
void ct_watch_destroy(struct ct_watch *watch);

#endif
