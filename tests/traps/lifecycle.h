/* lifecycle.h: the list of ways that lifecycle.c tests, and functions shared by the program's files. */
#ifndef LIFECYCLE_H
#define LIFECYCLE_H

#include "cuda_min.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* Each way_NAME() returns the exit status of the program. */
// clang-format off
#define WAYS(W)                                                                                              \
    W(calls) W(fork_busy) W(fork_exec) W(orphan) W(vfork_calls) W(vfork_first) W(spawn) W(exec_thread)       \
    W(exec_plain) W(exec_killed) W(daemon) W(close_range) W(seteuid) W(setuid)                               \
    W(cancel) W(cancel_pending) W(cancel_async) W(main_ends) W(main_ends_first) W(ends)                                        \
    W(parent_death) W(traced) W(stopped) W(timers)
// clang-format on
#define W(name) int way_##name(void);
WAYS(W)
#undef W
int end_process(const char *how); /* a process that is started by the way `ends` */

#define ENSURE(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition, strerror(errno));    \
            _exit(99);                                                                                       \
        }                                                                                                    \
    } while (0)

extern const char *self, *folder; /* the program's path, and the path of a scratch folder */
extern CUcontext current;

void start(void); /* initializes the driver */
CUresult call(void);
void calls(int count);
void call_new(int which); /* calls a function, chosen from six that are first called at different times */
void *one_call(void *unused);

pthread_t started(void *(*body)(void *), void *data);
void in_thread(void *(*body)(void *), void *data);
int status_of(pid_t child);
/* Flushes the trace, so that the daemon finds the process while it is still running. The kernel then reports
 * to the daemon how the process ended. */
void be_known(void);
void wait_for_blocked(void); /* waits until a call is blocked, which SIMCUDA_BLOCK_NOTIFY reports */

/* Starts threads that use all parts of the hook. The first of these threads keeps starting short-lived
 * threads, each of which takes a lane. The second makes calls, and the third defines functions. */
void be_busy(void);
void end_busy(void);
void *busy_caller(void *unused);

#endif
