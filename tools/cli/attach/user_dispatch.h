/* Recognises processes with threads that use Syscall User Dispatch (prctl(2), PR_SET_SYSCALL_USER_DISPATCH).
 * The kernel passes their system calls to the program's handler of SIGSYS, except those from one range of
 * addresses. System calls of the hook, or of a stopped thread, would also reach the handler. */
#ifndef CT_ATTACH_USER_DISPATCH_H
#define CT_ATTACH_USER_DISPATCH_H

#include "process_memory.h"

/* Returns whether a thread of the process uses it. If the process has no handler of SIGSYS, no thread is
 * stopped. Otherwise, stops the threads one after the other, each for some microseconds. A thread that does
 * not stop within 100 ms is not examined, nor is any after two seconds. A thread that is started meanwhile
 * does not use it. */
bool ct_process_dispatches(const struct ct_memory *memory);

#endif
