/* Runs the tracer, which stops threads of another process (stop.h). When the tracer exits, the kernel
 * releases these threads. */
#ifndef CT_ATTACH_TRACER_H
#define CT_ATTACH_TRACER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Runs `act` in a separate process, which carries on if this process is killed. If a separate process is not
 * permitted to trace, `act` runs in a thread. Only the `bytes` bytes of `data` are copied to `act` and back.
 * Returns the result of `act`, -errno if neither a process nor a thread could be started, or -ECANCELED if
 * the tracer was killed. */
int ct_tracer_run(int (*act)(void *data), void *data, size_t bytes);

/* Seizes a thread with ptrace. Called by the tracer. If the thread was stopped by a signal in a frozen
 * control group, the kernel waits until the group is thawed. After two seconds, ct_tracer_run() gives up then
 * and returns -ETIMEDOUT. Sets *suspends_filters if the thread's system calls pass its seccomp filters while
 * it is seized. Returns 0 or -errno. */
int ct_tracer_seize(pid_t thread, long options, bool *suspends_filters);

/* Gives the tracer the lowest real-time priority, or its former priority. While it keeps a thread stopped,
 * the program's other threads must not delay it. Has no effect if the tracer may not do this. Called by the
 * tracer. */
void ct_tracer_hurry(bool hurries);

/* Returns whether a thread that the tracer has stopped uses Syscall User Dispatch (user_dispatch.h). Kernels
 * before Linux 6.4 do not report it, and false is returned. */
bool ct_tracer_sees_dispatch(pid_t thread);

#endif
