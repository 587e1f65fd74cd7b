/* Stops one thread of another process briefly with ptrace. The stopped thread makes system calls and runs
 * code for us, and then continues unchanged. The thread's stack is never written, and none of the program's
 * signals are lost. If the thread was sleeping in a system call, the call is restarted.
 *
 * All functions must be called inside ct_tracer_run(). When the tracer exits, the kernel releases every
 * thread. */
#ifndef CT_ATTACH_STOP_H
#define CT_ATTACH_STOP_H

#include "process_memory.h"

#include <signal.h>
#include <sys/user.h>

struct ct_stop {
    const struct ct_memory *memory;
    pid_t thread;
    uint64_t system_call;              /* address of a syscall instruction in the process */
    struct user_regs_struct registers; /* the thread's registers at the stop */
    uint64_t signals;                  /* the mask of signals that the thread blocks */
    void *vectors;                     /* the thread's vector registers; NULL if not saved */
    size_t vectors_bytes;
    bool suspends_filters; /* the thread's system calls pass its seccomp filters */
    bool is_changed;       /* the thread's registers have been changed */
    bool is_resting;       /* the thread is at a stop from which it can be released */
    bool is_running;       /* the thread has been resumed and has not stopped again */
    bool is_gone;          /* the thread has exited */
    int fault;             /* the signal that ended our code; 0: none */
    siginfo_t held; /* a signal from another process, held back until the end; si_signo is 0 if there is
                     * none */
    uint64_t began_ns, took_ns;
};

enum ct_stop_for {
    CT_STOP_FOR_CODE,     /* for system calls, and code that uses only general-purpose registers */
    CT_STOP_FOR_FUNCTION, /* for C functions: saves the vector registers, and requires that the thread has set
                           * up its TLS */
};
/* Stops the most suitable thread. If `first` is a thread that sleeps in a call that will be restarted, stops
 * this one without examining all threads; 0: none. Returns 0, -ESRCH if there is no such process, -EPERM if
 * tracing is not permitted, or -ETIMEDOUT if no thread stops. Returns -ENOSYS if no syscall instruction was
 * found in the process. */
int ct_stop_begin(struct ct_stop *stop, const struct ct_memory *memory, enum ct_stop_for what_for,
                  pid_t first);
/* Stop a given thread in three steps: seize it, interrupt it, and wait for it to stop. Return 0, -EAGAIN if
 * the thread has exited or has not stopped by `until_ns`, or -EPERM. A seized thread keeps running. */
int ct_stop_seize(struct ct_stop *stop, pid_t thread);
int ct_stop_interrupt(struct ct_stop *stop);
int ct_stop_await(struct ct_stop *stop, uint64_t until_ns);
/* Returns whether the thread has a seccomp filter that would examine its system calls. */
bool ct_stop_is_filtered(const struct ct_stop *stop);
/* Makes the thread execute a system call. Returns the call's result or -errno, which is -ESRCH if the process
 * has exited. If the thread is filtered, returns -EKEYREJECTED instead. */
int64_t ct_stop_call(struct ct_stop *stop, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                     uint64_t e, uint64_t f);
/* Runs the code at `begin` until the code sets the word at `ran` and loops, and then stops the thread again.
 * `stack` may be 0 for code that needs no stack. Returns 0, -EFAULT if the code failed with signal
 * stop->fault, or -ESRCH. Returns -ETIMEDOUT if the thread did not execute any of the code, because the
 * process is frozen. If the process is frozen later, waits until the code has run. */
int ct_stop_run(struct ct_stop *stop, uint64_t begin, uint64_t ran, uint64_t stack);
/* Restores the thread's registers and signal mask, and resumes the thread. */
void ct_stop_end(struct ct_stop *stop);

#endif
