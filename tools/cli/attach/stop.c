/* Stops a thread, and makes it run system calls and code. A system call is bracketed by PTRACE_SYSCALL stops
 * at its entry and its exit. Our code ends in a loop and is stopped there, because a breakpoint would raise
 * SIGTRAP, which can reset the program's handler. The thread is released from a PTRACE_INTERRUPT stop, where
 * the kernel checks which system call was interrupted, and restarts it (arch_do_signal_or_restart()).
 *
 * A thread inside a restartable sequence (rseq) is not used, because the kernel would lose track of the
 * sequence. */
#include "stop.h"

#include "system_call.h"
#include "tracer.h"

#include "clock.h"
#include "fault_signals.h"
#include "proc_file.h"
#include "room.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <linux/rseq.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    FIRST_PATIENCE_NS = 10000000,
    LONGEST_PATIENCE_NS = 320000000
}; /* how long to wait before interrupting another thread */
#define PATIENCE_NS UINT64_C(5000000000)
/* How long to wait for a thread that is not transferring data. */
#define SPARE_NS UINT64_C(1000000000)
#define CALL_NS  UINT64_C(5000000000)
#define RUN_NS   UINT64_C(30000000000)
enum { SYSTEM_CALL_BYTES = 2, RED_ZONE_BYTES = 128 };

/* ---- stops ---- */

/* Stands for any thread that was interrupted. */
enum { ANY_THREAD = -1 };

static bool is_exec(int status)
{
    return status >> 16 == PTRACE_EVENT_EXEC;
}

/* Waits until the thread stops or exits. With ANY_THREAD, sets stop->thread to the thread that has stopped. A
 * thread that executes another program is released at once, as if it had exited. */
static int await_of(struct ct_stop *stop, pid_t which, uint64_t until_ns, int *status)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (;;) {
        const pid_t got = waitpid(which, status, __WALL | __WNOTHREAD | WNOHANG);
        if (got > 0 && WIFSTOPPED(*status) && !is_exec(*status)) {
            stop->thread = got;
            stop->is_running = false;
            return 0;
        }
        if (got > 0 && WIFSTOPPED(*status)) {
            ptrace(PTRACE_DETACH, got, NULL, NULL);
            stop->is_gone = true;
            return -ESRCH;
        }
        if (which != ANY_THREAD && got != 0) {
            stop->is_gone = true;
            return -ESRCH;
        }
        if (got > 0)
            continue;
        const uint64_t now_ns = ct_monotonic_ns();
        if (now_ns >= until_ns)
            return -ETIMEDOUT;
        /* SIGCHLD does not queue. This child's signal is lost if another child's SIGCHLD was already
         * pending. */
        enum { LOOK_NS = 1000000 };
        const uint64_t left_ns = until_ns - now_ns;
        sigtimedwait(&child, NULL,
                     &(struct timespec){ .tv_nsec = (long)(left_ns < LOOK_NS ? left_ns : LOOK_NS) });
    }
}

static int await(struct ct_stop *stop, uint64_t until_ns, int *status)
{
    return await_of(stop, stop->thread, until_ns, status);
}

static bool is_event_stop(int status)
{
    return status >> 16 == PTRACE_EVENT_STOP;
}

static bool is_call_stop(int status)
{
    return WSTOPSIG(status) == (SIGTRAP | 0x80);
}

/* Handles a stop that was caused by a signal, and sets *number to the signal to deliver when the thread is
 * resumed. SIGSTOP cannot be blocked, so it is passed on. A fault signal sent by another process is held back
 * until the thread is released. */
static int take_signal(struct ct_stop *stop, int status, long *number)
{
    siginfo_t info;
    *number = is_event_stop(status) || is_call_stop(status) ? 0 : WSTOPSIG(status);
    if (!ct_is_fault_signal((int)*number) || ptrace(PTRACE_GETSIGINFO, stop->thread, NULL, &info) != 0)
        return 0;
    if (info.si_code > 0) { /* the kernel raised the signal because our code failed */
        stop->fault = (int)*number;
        stop->is_resting = true;
        return -EFAULT;
    }
    stop->held = info;
    *number = 0;
    return 0;
}

static int resume(struct ct_stop *stop, long how, long number)
{
    stop->is_resting = false;
    if (ptrace((enum __ptrace_request)how, stop->thread, NULL, (void *)number) == 0) {
        stop->is_running = true;
        return 0;
    }
    stop->is_gone = true;
    return -ESRCH;
}

/* Resumes the thread until it makes a stop for which wanted() returns true. */
static int go_on(struct ct_stop *stop, long how, bool (*wanted)(int status))
{
    const uint64_t until_ns = ct_monotonic_ns() + CALL_NS;
    long number = 0;
    int status;
    for (;;) {
        int error = resume(stop, how, number);
        if (!error)
            error = await(stop, until_ns, &status);
        if (error)
            return error;
        if (wanted(status))
            return 0;
        error = take_signal(stop, status, &number);
        if (error)
            return error;
    }
}

/* Waits for the thread's PTRACE_INTERRUPT stop. There is no time limit, because the thread must not continue
 * with our registers. If the process is frozen, the command stops waiting for this tracer. */
static int rest(struct ct_stop *stop)
{
    for (;;) {
        int status;
        long number;
        int error = await(stop, UINT64_MAX, &status);
        if (!error && is_event_stop(status)) {
            stop->is_resting = true;
            return 0;
        }
        error = error ? error : take_signal(stop, status, &number);
        error = error ? error : resume(stop, PTRACE_CONT, number);
        if (error)
            return error;
    }
}

/* ---- threads ---- */

struct candidate {
    pid_t thread;
    int rank; /* the lowest is tried first */
};
enum { SLEEPS, RUNS, SLEEPS_ELSE, TRANSFERS, IS_STUCK };

/* Ranks threads by how suitable they are. Threads that sleep in a call that will be restarted are best,
 * followed by running threads, whose call is unknown. A stop would cut a transfer short. */
static int rank_of(pid_t pid, pid_t thread)
{
    char file[32], text[256];
    snprintf(file, sizeof(file), "task/%d/stat", (int)thread);
    const char *state = ct_proc_read(pid, file, text, sizeof(text)) == 0 ? strrchr(text, ')') : NULL;
    if (!state || state[1] != ' ' || strchr("DZX", state[2]))
        return IS_STUCK;
    if (state[2] == 'R')
        return RUNS;
    const bool sleeps = state[2] == 'S';
    snprintf(file, sizeof(file), "task/%d/syscall", (int)thread);
    if (ct_proc_read(pid, file, text, sizeof(text)) != 0)
        return SLEEPS_ELSE;
    struct ct_system_call call;
    if (!ct_system_call_read(&call, text))
        return SLEEPS_ELSE;
    if (ct_system_call_restarts(&call))
        return SLEEPS;
    return sleeps && ct_system_call_transfers(&call) ? TRANSFERS : SLEEPS_ELSE;
}

static int by_rank(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return a->rank != b->rank ? a->rank - b->rank : (a->thread > b->thread) - (a->thread < b->thread);
}

static size_t list(pid_t pid, struct candidate **candidates)
{
    char path[64];
    size_t count = 0, room = 0;
    *candidates = NULL;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *task; tasks && (task = readdir(tasks)) != NULL;) {
        struct candidate candidate = { .thread = (pid_t)strtol(task->d_name, NULL, 10) };
        if (candidate.thread <= 0 || !ct_thread_runs_code(pid, candidate.thread) ||
            !ct_make_room(candidates, count, &room, sizeof(candidate)))
            continue;
        candidate.rank = rank_of(pid, candidate.thread);
        (*candidates)[count++] = candidate;
    }
    if (tasks)
        closedir(tasks);
    if (count > 0)
        qsort(*candidates, count, sizeof(**candidates), by_rank);
    return count;
}

/* Finds a syscall instruction in the process. The vDSO contains some of them. */
static int find_system_call(struct ct_stop *stop)
{
    enum { CODE_BYTES_MOST = 4 << 20 };
    static const uint8_t wanted[SYSTEM_CALL_BYTES] = { 0x0f, 0x05 };
    for (size_t i = stop->memory->count; i-- > 0 && !stop->system_call;) {
        const struct ct_mapping *mapping = &stop->memory->mappings[i];
        const bool is_likely = strcmp(mapping->path, "[vdso]") == 0 || strstr(mapping->path, "/libc");
        const size_t bytes = mapping->end - mapping->begin;
        if (!mapping->is_executable || !mapping->is_readable || !is_likely || bytes > CODE_BYTES_MOST)
            continue;
        uint8_t *code = malloc(bytes);
        const uint8_t *found = code && ct_memory_read(stop->memory, mapping->begin, code, bytes)
                                   ? memmem(code, bytes, wanted, sizeof(wanted))
                                   : NULL;
        if (found)
            stop->system_call = mapping->begin + (uint64_t)(found - code);
        free(code);
    }
    return stop->system_call ? 0 : -ENOSYS;
}

/* Returns whether the thread is inside a restartable sequence. Linux 5.13 and later report the address of a
 * thread's rseq structure. On older kernels, glibc does not use restartable sequences. */
static bool is_in_sequence(const struct ct_stop *stop)
{
    struct {
        uint64_t address;
        uint32_t bytes, signature, flags, pad;
    } where;
    enum { GET_RSEQ_CONFIGURATION = 0x420f };
    struct rseq_cs section;
    uint64_t at = 0;
    if (ptrace((enum __ptrace_request)GET_RSEQ_CONFIGURATION, stop->thread, (void *)sizeof(where), &where) <
            (long)sizeof(where) ||
        !where.address ||
        !ct_memory_read(stop->memory, where.address + offsetof(struct rseq, rseq_cs), &at, sizeof(at)) ||
        !at || !ct_memory_read(stop->memory, at, &section, sizeof(section)))
        return false;
    return stop->registers.rip - section.start_ip < section.post_commit_offset;
}

static bool keep_vectors(struct ct_stop *stop)
{
    enum { ROOM = 64 << 10 };
    stop->vectors = malloc(ROOM);
    struct iovec vectors = { .iov_base = stop->vectors, .iov_len = ROOM };
    if (!stop->vectors ||
        ptrace(PTRACE_GETREGSET, stop->thread, (void *)(uintptr_t)NT_X86_XSTATE, &vectors) != 0)
        return false;
    stop->vectors_bytes = vectors.iov_len;
    return true;
}

/* Checks the stopped thread. Returns false if our code must run in a different thread or at a different
 * time. */
static bool is_usable(struct ct_stop *stop, enum ct_stop_for what_for)
{
    enum { USER_CODE_64 = 0x33 };
    if (stop->registers.cs != USER_CODE_64 || is_in_sequence(stop) || ct_tracer_sees_dispatch(stop->thread))
        return false;
    return what_for == CT_STOP_FOR_CODE || (stop->registers.fs_base != 0 && keep_vectors(stop));
}

static void let_go(struct ct_stop *stop)
{
    ptrace(PTRACE_DETACH, stop->thread, NULL, NULL);
    free(stop->vectors);
    stop->vectors = NULL;
}

int ct_stop_seize(struct ct_stop *stop, pid_t thread)
{
    stop->thread = thread;
    const int error =
        ct_tracer_seize(thread, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC, &stop->suspends_filters);
    stop->is_gone = error && error != -EPERM; /* -EPERM: perhaps this tracer has seized it before */
    return stop->is_gone ? -EAGAIN : 0;
}

int ct_stop_interrupt(struct ct_stop *stop)
{
    if (ptrace(PTRACE_INTERRUPT, stop->thread, NULL, NULL) == 0)
        return 0;
    return errno == ESRCH ? -EPERM : -EAGAIN; /* PTRACE_SEIZE was refused, so the thread is not ours */
}

static int wait_for(struct ct_stop *stop, pid_t which, uint64_t until_ns)
{
    int status;
    for (;;) {
        if (await_of(stop, which, until_ns, &status) != 0)
            return -EAGAIN;
        if (is_event_stop(status))
            break;
        /* Deliver a signal that was still pending. */
        if (ptrace(PTRACE_CONT, stop->thread, NULL, (void *)(long)WSTOPSIG(status)) != 0)
            return -EAGAIN;
    }
    stop->began_ns = ct_monotonic_ns();
    if (ptrace(PTRACE_GETREGS, stop->thread, NULL, &stop->registers) == 0 &&
        ptrace((enum __ptrace_request)PTRACE_GETSIGMASK, stop->thread, (void *)sizeof(stop->signals),
               &stop->signals) == 0)
        return 0;
    stop->is_gone = true;
    return -EAGAIN;
}

int ct_stop_await(struct ct_stop *stop, uint64_t until_ns)
{
    return wait_for(stop, stop->thread, until_ns);
}

/* Waits until a usable thread stops. Returns 0, -EAGAIN on timeout, or -ESRCH if the process's memory was
 * replaced, because it executed another program or the pid was reused. */
static int wait_for_any(struct ct_stop *stop, uint64_t until_ns, enum ct_stop_for what_for)
{
    do {
        stop->is_gone = false;
        if (wait_for(stop, ANY_THREAD, until_ns) == 0) {
            const bool is_same = ct_memory_take_from(stop->memory, stop->thread);
            if (is_same && is_usable(stop, what_for))
                return 0;
            let_go(stop);
            if (!is_same)
                return -ESRCH;
        }
    } while (ct_monotonic_ns() < until_ns);
    return -EAGAIN;
}

/* Interrupts the process's threads one after the other until one has stopped. Any thread will do, because a
 * stopped thread should not have to wait for the others. Until `spare_ns`, leaves out threads that transfer
 * data. Returns -EBUSY if these are all threads. */
static int interrupt_each(struct ct_stop *stop, uint64_t patience_ns, uint64_t spare_ns,
                          enum ct_stop_for what_for)
{
    struct candidate *candidates;
    const size_t count = list(stop->memory->pid, &candidates);
    const bool spares = ct_monotonic_ns() < spare_ns;
    size_t refusals = 0, spared = 0;
    int error = -EAGAIN;
    for (size_t i = 0; error == -EAGAIN && i < count; i++) {
        if (spares && candidates[i].rank == TRANSFERS) {
            spared++;
            continue;
        }
        error = ct_stop_seize(stop, candidates[i].thread);
        error = error ? error : ct_stop_interrupt(stop);
        refusals += error == -EPERM;
        error = error ? -EAGAIN : wait_for_any(stop, ct_monotonic_ns() + patience_ns, what_for);
    }
    free(candidates);
    if (count > 0 && spared == count)
        return -EBUSY;
    return refusals < count ? error : count == 0 ? -ESRCH : -EPERM;
}

/* Returns 0, or an error if the thread is not suitable. */
static int interrupt_first(struct ct_stop *stop, pid_t thread, enum ct_stop_for what_for)
{
    if (thread == 0 || !ct_thread_runs_code(stop->memory->pid, thread) ||
        rank_of(stop->memory->pid, thread) != SLEEPS || ct_stop_seize(stop, thread) != 0 ||
        ct_stop_interrupt(stop) != 0)
        return -EAGAIN;
    return wait_for_any(stop, ct_monotonic_ns() + FIRST_PATIENCE_NS, what_for);
}

/* Tries until PATIENCE_NS have passed. On a busy machine, a thread stops only when it is next scheduled.
 * Waiting for the stop does not delay the thread, so the wait may be long. */
int ct_stop_begin(struct ct_stop *stop, const struct ct_memory *memory, enum ct_stop_for what_for,
                  pid_t first)
{
    *stop = (struct ct_stop){ .memory = memory };
    const uint64_t begun_ns = ct_monotonic_ns();
    uint64_t patience_ns = FIRST_PATIENCE_NS;
    int error = find_system_call(stop);
    if (error || interrupt_first(stop, first, what_for) == 0)
        return error;
    for (;;) {
        error = interrupt_each(stop, patience_ns, begun_ns + SPARE_NS, what_for);
        if (error == -EBUSY) {
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
            continue;
        }
        if (error == -EAGAIN)
            error = wait_for_any(stop, ct_monotonic_ns() + patience_ns, what_for);
        if (error != -EAGAIN || ct_monotonic_ns() >= begun_ns + PATIENCE_NS)
            break;
        patience_ns = patience_ns < LONGEST_PATIENCE_NS ? patience_ns * 2 : patience_ns;
    }
    if (error)
        stop->is_gone = true;
    return error == -EAGAIN ? -ETIMEDOUT : error;
}

/* ---- code in the process ---- */

static int begin_code(struct ct_stop *stop, struct user_regs_struct *registers)
{
    enum { FLAG_TRAP = 0x100, FLAG_DIRECTION = 0x400 };
    if (stop->is_gone)
        return -ESRCH;
    /* Signals for faults in our code must be unblocked, because the kernel resets the handler of a fault
     * signal that is blocked. */
    const uint64_t blocked = ~CT_FAULT_SIGNALS;
    if (!stop->is_changed && ptrace((enum __ptrace_request)PTRACE_SETSIGMASK, stop->thread,
                                    (void *)sizeof(blocked), &blocked) != 0)
        return -ESRCH;
    stop->is_changed = true;
    registers->orig_rax = ~0ULL; /* keeps the kernel from restarting a system call in our code */
    registers->eflags &= ~(unsigned long long)(FLAG_TRAP | FLAG_DIRECTION);
    return ptrace(PTRACE_SETREGS, stop->thread, NULL, registers) != 0 ? -ESRCH : 0;
}

/* Another thread may install a filter for all threads at any time. */
bool ct_stop_is_filtered(const struct ct_stop *stop)
{
    return !stop->suspends_filters && ct_thread_filter_mode(stop->memory->pid, stop->thread) != 0;
}

int64_t ct_stop_call(struct ct_stop *stop, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                     uint64_t e, uint64_t f)
{
    struct user_regs_struct registers = stop->registers;
    registers.rip = stop->system_call;
    registers.rax = (uint64_t)number;
    registers.rdi = a;
    registers.rsi = b;
    registers.rdx = c;
    registers.r10 = d;
    registers.r8 = e;
    registers.r9 = f;
    int error = ct_stop_is_filtered(stop) ? -EKEYREJECTED : begin_code(stop, &registers);
    for (int stops = 0; !error && stops < 2; stops++) /* at the call's entry and exit */
        error = go_on(stop, PTRACE_SYSCALL, is_call_stop);
    if (!error && ptrace(PTRACE_GETREGS, stop->thread, NULL, &registers) != 0)
        error = -ESRCH;
    return error ? error : (int64_t)registers.rax;
}

/* Waits until the process sets the word. */
static int await_word(struct ct_stop *stop, uint64_t address, uint64_t until_ns)
{
    enum { LOOK_NS = 20000 };
    uint32_t word = 0;
    while (ct_monotonic_ns() < until_ns) {
        int status;
        long number;
        if (!ct_memory_read(stop->memory, address, &word, sizeof(word)) || word)
            return word ? 0 : -ESRCH;
        int error = await(stop, ct_monotonic_ns() + LOOK_NS, &status);
        if (error == -ETIMEDOUT)
            continue;
        error = error ? error : take_signal(stop, status, &number);
        error = error ? error : resume(stop, PTRACE_CONT, number);
        if (error)
            return error;
    }
    return -ETIMEDOUT;
}

/* Handles a thread that has not finished the code in time. If it has executed an instruction, it must finish,
 * because the code may hold a lock. */
static int finish_late(struct ct_stop *stop, uint64_t begin, uint64_t ran)
{
    struct user_regs_struct registers;
    ptrace(PTRACE_INTERRUPT, stop->thread, NULL, NULL);
    int error = rest(stop);
    if (!error && ptrace(PTRACE_GETREGS, stop->thread, NULL, &registers) != 0)
        error = -ESRCH;
    if (!error && registers.rip == begin)
        error = -ETIMEDOUT;
    if (!error)
        error = resume(stop, PTRACE_CONT, 0);
    return error ? error : await_word(stop, ran, UINT64_MAX);
}

int ct_stop_run(struct ct_stop *stop, uint64_t begin, uint64_t ran, uint64_t stack)
{
    struct user_regs_struct registers = stop->registers;
    const uint32_t no = 0;
    registers.rip = begin;
    registers.rsp = stack ? stack : registers.rsp;
    int error = ct_memory_write(stop->memory, ran, &no, sizeof(no)) ? begin_code(stop, &registers) : -ESRCH;
    if (!error)
        error = resume(stop, PTRACE_CONT, 0);
    if (!error)
        error = await_word(stop, ran, ct_monotonic_ns() + RUN_NS);
    if (error == -ETIMEDOUT)
        error = finish_late(stop, begin, ran);
    if (error)
        return error;
    ptrace(PTRACE_INTERRUPT, stop->thread, NULL, NULL);
    return rest(stop);
}

static void put_back(struct ct_stop *stop)
{
    struct user_regs_struct registers = stop->registers;
    if (!stop->is_resting) {
        /* Interrupt before resuming, so that no instruction runs before the stop. A thread that did not stop
         * in time is still running. */
        ptrace(PTRACE_INTERRUPT, stop->thread, NULL, NULL);
        if ((!stop->is_running && resume(stop, PTRACE_CONT, 0) != 0) || rest(stop) != 0)
            return;
    }
    if (stop->vectors) {
        struct iovec vectors = { .iov_base = stop->vectors, .iov_len = stop->vectors_bytes };
        ptrace(PTRACE_SETREGSET, stop->thread, (void *)(uintptr_t)NT_X86_XSTATE, &vectors);
    }
    ptrace(PTRACE_SETREGS, stop->thread, NULL, &registers);
    ptrace((enum __ptrace_request)PTRACE_SETSIGMASK, stop->thread, (void *)sizeof(stop->signals),
           &stop->signals);
}

/* Returns whether the system call was ended by a pending signal. */
static bool has_signal(const struct ct_stop *stop)
{
    char file[32], text[4096];
    snprintf(file, sizeof(file), "task/%d/status", (int)stop->thread);
    if (ct_proc_read(stop->memory->pid, file, text, sizeof(text)) != 0)
        return true;
    uint64_t own = 0, shared = 0;
    const char *at = strstr(text, "\nSigPnd:");
    if (!at || sscanf(at, "\nSigPnd: %lx\nShdPnd: %lx", &own, &shared) != 2)
        return true;
    return ((own | shared) & ~stop->signals) != 0;
}

/* Restarts a sleeping system call if it ended only because we stopped the thread, and if the kernel does not
 * restart it. */
static void restart(struct ct_stop *stop)
{
    struct user_regs_struct *registers = &stop->registers;
    if ((int64_t)registers->rax != -EINTR || !ct_system_call_fails((int64_t)registers->orig_rax) ||
        has_signal(stop))
        return;
    registers->rax = registers->orig_rax;
    registers->rip -= SYSTEM_CALL_BYTES;
    registers->orig_rax = ~0ULL;
    ptrace(PTRACE_SETREGS, stop->thread, NULL, registers);
}

void ct_stop_end(struct ct_stop *stop)
{
    if (!stop->is_gone) {
        restart(stop);
        if (stop->is_changed)
            put_back(stop);
    }
    /* Send the signal while the thread is ours, because its id may be reused afterwards. */
    if (!stop->is_gone && stop->held.si_signo)
        syscall(SYS_tgkill, stop->memory->pid, stop->thread, stop->held.si_signo);
    stop->took_ns = ct_monotonic_ns() - stop->began_ns;
    let_go(stop);
    stop->is_gone = true;
}
