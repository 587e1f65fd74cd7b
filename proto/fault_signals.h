/* Signals that code which keeps the program's signals out must leave as the program has set them.
 *
 * The kernel raises some when an instruction fails. Programs serve faults with their handlers, such as write
 * barriers and pagers. The code of a visit and the hook may touch memory whose faults the program serves,
 * because they call its allocator. A blocked signal would then kill the program. */
#ifndef CT_PROTO_FAULT_SIGNALS_H
#define CT_PROTO_FAULT_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* A mask as the kernel's, in which the lowest bit is signal 1. */
#define CT_FAULT_SIGNALS                                                                                     \
    (UINT64_C(1) << (SIGSEGV - 1) | UINT64_C(1) << (SIGBUS - 1) | UINT64_C(1) << (SIGFPE - 1) |              \
     UINT64_C(1) << (SIGILL - 1) | UINT64_C(1) << (SIGTRAP - 1) | UINT64_C(1) << (SIGSYS - 1))

/* In setuid() and its like, glibc waits until each thread has handled this signal, and holds a lock that the
 * loader and the end of a thread need (SIGSETXID in glibc's internal-signals.h). A thread that blocks the
 * signal and needs the lock would wait for ever. */
#define CT_SETXID_SIGNAL (UINT64_C(1) << (33 - 1))

static inline bool ct_is_fault_signal(int number)
{
    return number > 0 && number <= 64 && CT_FAULT_SIGNALS >> (number - 1) & 1;
}

#endif
