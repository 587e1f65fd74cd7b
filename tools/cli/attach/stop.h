/* One thread of another process, stopped for a moment by ptrace. It makes our system calls and runs our code,
 * and then continues unchanged. Its stack is never written, no signal of the program is lost, and the kernel
 * restarts a system call that it slept in.
 *
 * All of this happens inside ct_tracer_run(), at whose end the kernel releases every thread. */
#ifndef CT_ATTACH_STOP_H
#define CT_ATTACH_STOP_H

#include "process_memory.h"

#include <signal.h>
#include <sys/user.h>

struct ct_stop {
    const struct ct_memory *memory;
    pid_t thread;
    uint64_t system_call;              /* address of the instruction, somewhere in the process */
    struct user_regs_struct registers; /* its registers at the stop */
    uint64_t signals;                  /* the signals that it blocks */
    void *vectors;                     /* its vector registers; NULL: not kept */
    size_t vectors_bytes;
    bool is_changed; /* it has other registers now */
    bool is_resting; /* at a stop where it can be released */
    bool is_gone;    /* it has ended */
    int fault;       /* signal that ended our code; 0: none */
    siginfo_t held;  /* a signal from another process, kept until the end; si_signo 0: none */
    uint64_t began_ns, took_ns;
};

enum ct_stop_for {
    CT_STOP_FOR_CODE,     /* system calls, and code that uses only general registers */
    CT_STOP_FOR_FUNCTION, /* a C function: vector registers are kept, and the thread has its own memory */
};
/* Stops the most suitable thread. Returns 0 or -errno. -ESRCH: there is no such process. -EPERM: the rights
 * are missing. -ETIMEDOUT: no thread stops. -ENOSYS: its memory has no system call instruction. */
int ct_stop_begin(struct ct_stop *stop, const struct ct_memory *memory, enum ct_stop_for what_for);
/* Stop one given thread in two steps: interrupt it, and wait until it has stopped. Return 0, -EAGAIN if it
 * has ended or has not stopped by then, or -EPERM. */
int ct_stop_interrupt(struct ct_stop *stop, pid_t thread);
int ct_stop_await(struct ct_stop *stop, uint64_t until_ns);
/* Makes a system call in the process. Returns its result or -errno, which is -ESRCH if the process has
 * ended. */
int64_t ct_stop_call(struct ct_stop *stop, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                     uint64_t e, uint64_t f);
/* Runs code at `begin` until it sets the word at `ran`. The code then loops, and is stopped there. `stack`
 * may be 0 for code without a stack. Returns 0, -EFAULT if the code failed with signal stop->fault, or
 * -ESRCH. */
int ct_stop_run(struct ct_stop *stop, uint64_t begin, uint64_t ran, uint64_t stack);
/* Puts everything back, and resumes the thread. */
void ct_stop_end(struct ct_stop *stop);

#endif
