/* Describes what happens to a system call whose thread is stopped by ptrace. */
#ifndef CT_ATTACH_SYSTEM_CALL_H
#define CT_ATTACH_SYSTEM_CALL_H

#include <stdbool.h>
#include <stdint.h>

struct ct_system_call {
    int64_t number;
    uint64_t arguments[6];
};

/* Reads the contents of /proc/PID/task/TID/syscall. Returns false if the thread is in no system call, or if
 * it is running, in which case the kernel does not report the call. */
bool ct_system_call_read(struct ct_system_call *call, const char *text);
/* Returns whether the kernel restarts the sleeping system call after a stop. */
bool ct_system_call_restarts(const struct ct_system_call *call);
/* Returns whether the system call may return after a stop with a part of its data transferred. */
bool ct_system_call_transfers(const struct ct_system_call *call);
/* Returns whether the system call may fail with EINTR after a stop, without having had any effect. */
bool ct_system_call_fails(int64_t number);

#endif
