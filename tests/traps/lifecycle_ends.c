/* Ways for a call, a thread or a process to end or to be delayed: cancellation, exits, signals and
 * tracers. */
#include "lifecycle.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

/* ---- threads that end while they are inside a call ---- */

static void *blocked(void *unused)
{
    cuCtxSynchronize();
    return unused;
}

/* Cancels a thread in a blocking driver function, which acts as a cancellation point. */
int way_cancel(void)
{
    int cancelled = 0;
    start();
    for (int i = 0; i < 20; i++) {
        void *result = NULL;
        const pthread_t thread = started(blocked, NULL);
        wait_for_blocked();
        pthread_cancel(thread);
        pthread_join(thread, &result);
        cancelled += result == PTHREAD_CANCELED;
        in_thread(one_call, NULL);
    }
    printf("cancelled: %d\n", cancelled);
    return 0;
}

static CUresult behind_cancellation;
static void *cancelled_before(void *unused)
{
    pthread_cancel(pthread_self());
    behind_cancellation = call();
    pthread_testcancel();
    return unused;
}

/* A thread makes its first call while a cancellation is pending. The call must not act as a cancellation
 * point. */
int way_cancel_pending(void)
{
    void *result = NULL;
    start();
    behind_cancellation = CUDA_ERROR_UNKNOWN;
    pthread_join(started(cancelled_before, NULL), &result);
    in_thread(one_call, NULL);
    printf("called: %d, cancelled: %d\n", behind_cancellation, result == PTHREAD_CANCELED);
    return 0;
}

static atomic_int made;
static void *until_cancelled(void *unused)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;) {
        calls(1);
        atomic_fetch_add(&made, 1);
    }
    return unused;
}

/* Cancels a thread at an arbitrary instruction, which may be in the hook. */
int way_cancel_async(void)
{
    int cancelled = 0;
    start();
    for (int i = 0; i < TIMES; i++) {
        void *result = NULL;
        atomic_store(&made, 0);
        const pthread_t thread = started(until_cancelled, NULL);
        while (atomic_load(&made) < 50 + i)
            sched_yield();
        pthread_cancel(thread);
        pthread_join(thread, &result);
        cancelled += result == PTHREAD_CANCELED;
        calls(3);
    }
    in_thread(one_call, NULL);
    printf("cancelled: %d\n", cancelled);
    return 0;
}

/* Makes calls in another thread after the first thread has ended. */
static void *outlives(void *data)
{
    if (data)
        start();
    while (syscall(SYS_tgkill, getpid(), getpid(), 0) == 0) {
        char path[64], text[512] = "";
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
        const int fd = open(path, O_RDONLY);
        const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
        close(fd);
        if (n > 0 && strstr(text, ") Z "))
            break;
    }
    if (!data)
        start();
    be_known();
    calls(30000);
    in_thread(one_call, NULL);
    printf("outlived\n");
    exit(6);
}

int way_main_ends(void)
{
    started(outlives, &made);
    pthread_exit(NULL);
}

int way_main_ends_first(void)
{
    started(outlives, NULL);
    pthread_exit(NULL);
}

/* ---- processes that end while other threads are inside calls ---- */

static void *caller(void *unused)
{
    for (;;)
        call();
    return unused;
}

static void end_by_exit(void)
{
    exit(11);
}
static void end_by_exit_now(void)
{
    _exit(12);
}
static void end_by_iso_exit(void)
{
    _Exit(13);
}
static void end_quickly(void)
{
    quick_exit(14);
}
static void end_raw(void)
{
    syscall(SYS_exit_group, 15);
}
static void end_crashing(void)
{
    *(volatile int *)(uintptr_t)current = 0; /* a handle is not an address that the program may access */
    *(volatile int *)(uintptr_t)8 = 0;
}

static void *end_it(void *how)
{
    calls(1);
    (*(void (**)(void))how)();
    return NULL;
}

static const struct {
    const char *name;
    void (*end)(void);
} ends[] = {
    { "exit", end_by_exit },       { "_exit", end_by_exit_now }, { "_Exit", end_by_iso_exit },
    { "quick_exit", end_quickly }, { "raw", end_raw },           { "abort", abort },
    { "crash", end_crashing },
};

int end_process(const char *name)
{
    start();
    pthread_t inside = started(blocked, NULL);
    wait_for_blocked();
    pthread_detach(inside);
    be_known();
    for (int i = 0; i < 2; i++)
        pthread_detach(started(caller, NULL));
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (strcmp(name, ends[i].name) == 0)
            in_thread(end_it, (void *)(uintptr_t)&ends[i].end);
    }
    return 16; /* returned from main, for "return" */
}

int way_ends(void)
{
    static const char *const all[] = { "return",     "exit", "_exit", "_Exit",
                                       "quick_exit", "raw",  "abort", "crash" };
    setrlimit(RLIMIT_CORE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            ENSURE(chdir(folder) == 0);
            execl(self, self, "end", all[i], (char *)NULL);
            _exit(98);
        }
        const int status = status_of(child);
        printf("%s: status %d, signal %d, core %d\n", all[i], WEXITSTATUS(status), WTERMSIG(status),
               !!WCOREDUMP(status));
    }
    return 0;
}

/* ---- effects of other processes ---- */

/* A process is killed because its parent has ended (PR_SET_PDEATHSIG). */
int way_parent_death(void)
{
    int ends_of_pipe[2], status = -1;
    char byte;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    ENSURE(pipe(ends_of_pipe) == 0);
    const pid_t parent = fork();
    if (parent == 0) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            start();
            calls(100);
            ENSURE(write(ends_of_pipe[1], "r", 1) == 1);
            cuCtxSynchronize();
        }
        ENSURE(read(ends_of_pipe[0], &byte, 1) == 1);
        wait_for_blocked();
        _exit(0);
    }
    status_of(parent);
    ENSURE(wait(&status) > 0);
    printf("signal %d\n", WTERMSIG(status));
    return 0;
}

static struct {
    atomic_bool stop;
    atomic_long calls;
} * shared;

static pid_t child_that_calls(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t child = fork();
    if (child == 0) {
        start();
        while (!atomic_load(&shared->stop)) {
            calls(1);
            atomic_fetch_add(&shared->calls, 1);
        }
        exit(0);
    }
    while (atomic_load(&shared->calls) == 0)
        sched_yield();
    return child;
}

static void more_calls(void)
{
    const long before = atomic_load(&shared->calls);
    while (atomic_load(&shared->calls) < before + 100)
        sched_yield();
}

int way_traced(void)
{
    const pid_t child = child_that_calls();
    int status = 0;
    for (int i = 0; i < 20; i++) {
        if (ptrace(PTRACE_ATTACH, child, 0, 0) != 0) {
            kill(child, SIGKILL);
            return 77;
        }
        ENSURE(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        for (int step = 0; step < 20; step++) {
            ptrace(PTRACE_SINGLESTEP, child, 0, 0);
            ENSURE(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        }
        ptrace(PTRACE_DETACH, child, 0, 0);
        more_calls();
    }
    atomic_store(&shared->stop, true);
    printf("detached: %d\n", status_of(child));
    return 0;
}

int way_stopped(void)
{
    const pid_t child = child_that_calls();
    int status = 0;
    for (int i = 0; i < 30; i++) {
        kill(child, SIGSTOP);
        ENSURE(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
        kill(child, SIGCONT);
        more_calls();
    }
    atomic_store(&shared->stop, true);
    printf("continued: %d\n", status_of(child));
    return 0;
}

/* ---- signal handlers that nest three deep on an alternate stack, a thousand times a second ---- */

static atomic_long handled;
static __thread int nested;

static void handler(int number)
{
    const int saved = errno;
    if (++nested <= 3) {
        call();
        raise(number);
        call();
    }
    nested--;
    atomic_fetch_add(&handled, 1);
    errno = saved;
}

static void *interrupted(void *unused)
{
    enum { STACK_BYTES = 256 * 1024 };
    void *memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ENSURE(sigaltstack(&(stack_t){ .ss_sp = memory, .ss_size = STACK_BYTES }, NULL) == 0);
    while (atomic_load(&handled) < 400) {
        calls(10);
        call_new((int)handled);
    }
    sigaltstack(&(stack_t){ .ss_flags = SS_DISABLE }, NULL);
    return unused;
}

int way_timers(void)
{
    const struct timeval interval = { .tv_usec = 1000 };
    const struct itimerval timer = { interval, interval }, none = { { 0 }, { 0 } };
    const struct sigaction action = { .sa_handler = handler,
                                      .sa_flags = SA_RESTART | SA_NODEFER | SA_ONSTACK };
    pthread_t threads[4];
    start();
    sigaction(SIGPROF, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_PROF, &timer, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < 4; i++)
        threads[i] = started(interrupted, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    setitimer(ITIMER_PROF, &none, NULL);
    setitimer(ITIMER_REAL, &none, NULL);
    printf("interrupted\n");
    return 0;
}
