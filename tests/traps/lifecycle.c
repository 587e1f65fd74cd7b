/* How processes, threads and calls begin, change and end, one way for each name; prints what it saw.
 *
 *   lifecycle WAY [SCRATCH FOLDER] */
#include "cuda_min.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENSURE(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "lifecycle.c:%d: not so: %s (%s)\n", __LINE__, #condition, strerror(errno));     \
            _exit(99);                                                                                       \
        }                                                                                                    \
    } while (0)

extern char **environ;
static const char *self, *folder;
static CUcontext current;

static CUresult call(void)
{
    CUcontext context;
    return cuCtxGetCurrent(&context);
}

static void calls(int count)
{
    for (int i = 0; i < count; i++)
        ENSURE(call() == CUDA_SUCCESS);
}

static void start(void)
{
    CUdevice device;
    ENSURE(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
           cuDevicePrimaryCtxRetain(&current, device) == CUDA_SUCCESS &&
           cuCtxSetCurrent(current) == CUDA_SUCCESS);
}

static pthread_t started(void *(*body)(void *), void *data)
{
    pthread_t thread;
    ENSURE(pthread_create(&thread, NULL, body, data) == 0);
    return thread;
}

static void in_thread(void *(*body)(void *), void *data)
{
    ENSURE(pthread_join(started(body, data), NULL) == 0);
}

static int status_of(pid_t child)
{
    int status = -1;
    while (waitpid(child, &status, 0) < 0)
        ENSURE(errno == EINTR);
    return status;
}

/* To the daemon, by a flush: of a process that it has known while it ran the kernel says how it ended. */
static void be_known(void)
{
    ENSURE(system(getenv("FLUSH")) >= 0);
}

/* A byte for each blocked call, from SIMCUDA_BLOCK_NOTIFY. */
static void wait_for_blocked(void)
{
    char byte;
    const int fd = open(getenv("SIMCUDA_BLOCK_NOTIFY"), O_RDONLY | O_CLOEXEC);
    ENSURE(fd >= 0 && read(fd, &byte, 1) == 1);
    close(fd);
}

/* Functions that take no context to speak of, each to be called for the first time at another moment. */
static void call_new(int which)
{
    int number;
    size_t size;
    CUdevice device;
    CUcontext context;
    switch (which % 6) {
    case 0:
        cuDriverGetVersion(&number);
        break;
    case 1:
        cuDeviceGetCount(&number);
        break;
    case 2:
        cuCtxGetDevice(&device);
        break;
    case 3:
        cuDeviceGet(&device, 0);
        break;
    case 4:
        cuMemGetInfo(&size, &size);
        break;
    default:
        cuCtxSetCurrent(cuCtxGetCurrent(&context) ? NULL : context);
    }
}

/* ---- threads that are busy in all that the hook does ---- */

static atomic_bool stop_busy;

static void *one_call(void *unused)
{
    calls(1);
    return unused;
}

/* Threads that take lanes, one after the other. */
static void *busy_takers(void *unused)
{
    while (!atomic_load(&stop_busy))
        in_thread(one_call, NULL);
    return unused;
}

static void *busy_caller(void *unused)
{
    while (!atomic_load(&stop_busy))
        calls(100);
    return unused;
}

/* Functions that are called for the first time. */
static void *busy_definer(void *unused)
{
    for (int i = 0; !atomic_load(&stop_busy); i++)
        call_new(i);
    return unused;
}

static void *(*const busy[])(void *) = { busy_takers, busy_caller, busy_definer };
enum { BUSY = sizeof busy / sizeof busy[0] };

/* ---- fork ---- */

static void *fork_many(void *unused)
{
    for (int i = 0; i < 60; i++) {
        const pid_t child = fork();
        if (child == 0) {
            calls(20);
            for (int which = 0; which < 6; which++)
                call_new(i + which);
            in_thread(one_call, NULL);
            if (i % 2)
                _exit(i % 5);
            exit(i % 5);
        }
        ENSURE(child > 0);
        const int status = status_of(child);
        if (status != (i % 5) << 8)
            printf("child %d: %x\n", i, status);
    }
    return unused;
}

static int way_fork_busy(void)
{
    pthread_t threads[BUSY];
    start();
    fflush(stdout);
    for (int i = 0; i < BUSY; i++)
        threads[i] = started(busy[i], NULL);
    in_thread(fork_many, NULL);
    atomic_store(&stop_busy, true);
    for (int i = 0; i < BUSY; i++)
        pthread_join(threads[i], NULL);
    printf("forked\n");
    return 0;
}

static int way_calls(void)
{
    start();
    calls(50);
    return 0;
}

static int way_fork_exec(void)
{
    start();
    for (int i = 0; i < 5; i++) {
        const pid_t child = fork();
        if (child == 0) {
            call();
            execl(self, self, "calls", (char *)NULL);
            _exit(98);
        }
        printf("%d ", status_of(child));
        calls(10);
    }
    return 0;
}

/* A child that calls nothing outlives its parent: it stays until the scratch folder's FIFO `hold` is closed.
 */
static int way_orphan(void)
{
    char path[4200], byte;
    snprintf(path, sizeof path, "%s/hold", folder);
    start();
    calls(10);
    if (fork() > 0)
        return 0;
    const int fd = open(path, O_RDONLY);
    _exit(fd < 0 || read(fd, &byte, 1) != 0);
}

/* ---- vfork: the child has its parent's memory ---- */

static int vfork_and_call(void)
{
    const pid_t child = vfork();
    if (child == 0) {
        const bool fine = call() == CUDA_SUCCESS && call() == CUDA_SUCCESS;
        _exit(fine ? 5 : 6);
    }
    return WEXITSTATUS(status_of(child));
}

static void *vfork_in_thread(void *sum)
{
    *(int *)sum += vfork_and_call();
    calls(10);
    return NULL;
}

/* By a thread that has called before, and by others that have not, while others are at work. */
static int way_vfork_calls(void)
{
    pthread_t threads[BUSY];
    int sum = 0;
    start();
    for (int i = 0; i < BUSY; i++)
        threads[i] = started(busy[i], NULL);
    for (int i = 0; i < 20; i++) {
        sum += vfork_and_call();
        calls(10);
        in_thread(vfork_in_thread, &sum);
    }
    atomic_store(&stop_busy, true);
    for (int i = 0; i < BUSY; i++)
        pthread_join(threads[i], NULL);
    printf("vforked: %d\n", sum);
    return 0;
}

/* The first call of all is the child's. */
static int way_vfork_first(void)
{
    const pid_t child = vfork();
    if (child == 0) {
        int version;
        _exit(cuDriverGetVersion(&version) == CUDA_SUCCESS ? 5 : 6);
    }
    printf("%d\n", WEXITSTATUS(status_of(child)));
    start();
    calls(30000);
    return 0;
}

/* ---- programs that are started ---- */

static int way_spawn(void)
{
    char command[4200], line[64] = "";
    char *const arguments[] = { (char *)(uintptr_t)self, (char *)(uintptr_t) "calls", NULL };
    pid_t child;
    start();
    ENSURE(posix_spawn(&child, self, NULL, NULL, arguments, environ) == 0);
    printf("spawned: %d\n", status_of(child));
    snprintf(command, sizeof command, "'%s' calls; echo said", self);
    FILE *pipe = popen(command, "r");
    ENSURE(pipe && fgets(line, sizeof line, pipe));
    printf("opened: %d, %s", pclose(pipe), line);
    snprintf(command, sizeof command, "'%s' calls && exit 3", self);
    printf("by system: %d\n", system(command));
    calls(10);
    return 0;
}

static int execute(const char *path, const char *first, const char *second)
{
    be_known();
    fflush(stdout);
    execl(path, path, first, second, (char *)NULL);
    return 98;
}

static void *execute_self(void *unused)
{
    calls(10);
    execute(self, "calls", NULL);
    return unused;
}

static int way_exec_thread(void)
{
    start();
    const pthread_t other = started(busy_caller, NULL);
    in_thread(execute_self, NULL);
    pthread_join(other, NULL);
    return 1;
}

static int way_exec_plain(void)
{
    start();
    calls(10);
    return execute("/bin/sh", "-c", "exit 7");
}

static int way_exec_killed(void)
{
    start();
    calls(10);
    return execute("/bin/sh", "-c", "kill -9 $$");
}

/* ---- descriptors ---- */

enum { OWN = 40, LAST_FD = 1024 };

/* Files of the program in the place of whatever was open. */
static void take_descriptors(int own[OWN])
{
    char path[4200];
    for (int i = 0; i < OWN; i++) {
        snprintf(path, sizeof path, "%s/own.%d", folder, i);
        own[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        ENSURE(own[i] >= 0 && write(own[i], "own", 3) == 3);
    }
}

static int changed(const int own[OWN])
{
    int count = 0;
    for (int i = 0; i < OWN; i++) {
        struct stat status;
        char text[4] = "";
        count += fstat(own[i], &status) != 0 || status.st_size != 3 || pread(own[i], text, 3, 0) != 3 ||
                 strcmp(text, "own") != 0;
    }
    return count;
}

static void close_all(void)
{
    for (int fd = 0; fd < LAST_FD; fd++)
        close(fd);
    ENSURE(open("/dev/null", O_RDWR) == 0 && dup(0) == 1 && dup(0) == 2);
}

/* As daemons are made: two forks, a session, no descriptor left. */
static void be_daemon(bool late, const char *answer)
{
    char text[64];
    int own[OWN];
    if (fork() > 0)
        _exit(0);
    if (late)
        start();
    close_all();
    take_descriptors(own);
    if (!late)
        start();
    calls(20000);
    in_thread(one_call, NULL);
    for (int i = 0; i < 6; i++)
        call_new(i);
    calls(20000);
    snprintf(text, sizeof text, "%d files changed\n", changed(own));
    const int fd = open(answer, O_WRONLY);
    ENSURE(fd >= 0 && write(fd, text, strlen(text)) > 0);
    exit(4);
}

static int way_daemon(void)
{
    char answer[4200], text[64];
    snprintf(answer, sizeof answer, "%s/answer", folder);
    ENSURE(mkfifo(answer, 0600) == 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    for (int late = 0; late < 2; late++) {
        const pid_t child = fork();
        if (child == 0) {
            setsid();
            be_daemon(late, answer);
        }
        status_of(child);
        const int fd = open(answer, O_RDONLY);
        const ssize_t n = read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = '\0';
        close(fd);
        int status = -1;
        ENSURE(wait(&status) > 0);
        printf("ended with %d: %s", status >> 8, text);
    }
    unlink(answer);
    return 0;
}

/* The same in a process that is not forked, by close_range() in the midst of other threads' calls: these hold
 * no descriptor between them. */
static int way_close_range(void)
{
    int own[OWN];
    start();
    calls(100);
    syscall(SYS_close_range, 3U, ~0U, 0U);
    take_descriptors(own);
    calls(30000);
    for (int i = 0; i < 20; i++)
        in_thread(one_call, NULL);
    for (int i = 0; i < 6; i++)
        call_new(i);
    printf("%d files changed\n", changed(own));
    return 0;
}

/* ---- another user ---- */

static int way_seteuid(void)
{
    start();
    calls(100);
    printf("%d\n", seteuid(65534));
    for (int i = 0; i < 6; i++)
        call_new(i);
    calls(100000);
    in_thread(one_call, NULL);
    printf("%d\n", seteuid(0));
    calls(100);
    return 0;
}

static int way_setuid(void)
{
    start();
    calls(100);
    printf("%d\n", setuid(65534));
    for (int i = 0; i < 6; i++)
        call_new(i);
    calls(100000);
    in_thread(one_call, NULL);
    return 0;
}

/* ---- threads that end inside a call ---- */

static void *blocked(void *unused)
{
    cuCtxSynchronize();
    return unused;
}

/* In a function of the driver that waits, which is a point of cancellation there. */
static int way_cancel(void)
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

enum { CANCELLED = 60 };

/* At any instruction, the hook's among them. */
static int way_cancel_async(void)
{
    int cancelled = 0;
    start();
    for (int i = 0; i < CANCELLED; i++) {
        void *result = NULL;
        atomic_store(&made, 0);
        const pthread_t thread = started(until_cancelled, NULL);
        while (atomic_load(&made) < 50 + i)
            sched_yield();
        pthread_cancel(thread);
        pthread_join(thread, &result);
        /* Where cancellation comes as it is allowed again, glibc 2.36 gives no PTHREAD_CANCELED. */
        cancelled += result == PTHREAD_CANCELED || !result;
        calls(3);
    }
    in_thread(one_call, NULL);
    printf("cancelled: %d\n", cancelled);
    return 0;
}

/* The first thread ends, and the others are the process. */
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

static int way_main_ends(void)
{
    started(outlives, &made);
    pthread_exit(NULL);
}

static int way_main_ends_first(void)
{
    started(outlives, NULL);
    pthread_exit(NULL);
}

/* ---- ends, while other threads are inside calls ---- */

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
    *(volatile int *)(uintptr_t)current = 0; /* a handle is no address of the program's */
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

static int end_process(const char *name)
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
    return 16; /* from main, for "return" */
}

static int way_ends(void)
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

/* ---- what others do to a process ---- */

/* The end of its parent kills it. */
static int way_parent_death(void)
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

static int way_traced(void)
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

static int way_stopped(void)
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

/* ---- handlers on a stack of their own, three deep, a thousand times a second ---- */

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

static int way_timers(void)
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

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } ways[] = {
        { "calls", way_calls },
        { "fork_busy", way_fork_busy },
        { "fork_exec", way_fork_exec },
        { "orphan", way_orphan },
        { "vfork_calls", way_vfork_calls },
        { "vfork_first", way_vfork_first },
        { "spawn", way_spawn },
        { "exec_thread", way_exec_thread },
        { "exec_plain", way_exec_plain },
        { "exec_killed", way_exec_killed },
        { "daemon", way_daemon },
        { "close_range", way_close_range },
        { "seteuid", way_seteuid },
        { "setuid", way_setuid },
        { "cancel", way_cancel },
        { "cancel_async", way_cancel_async },
        { "main_ends", way_main_ends },
        { "main_ends_first", way_main_ends_first },
        { "ends", way_ends },
        { "parent_death", way_parent_death },
        { "traced", way_traced },
        { "stopped", way_stopped },
        { "timers", way_timers },
    };
    if (argc < 2)
        return 2;
    self = argv[0];
    folder = argc > 2 ? argv[2] : ".";
    if (strcmp(argv[1], "end") == 0)
        return end_process(folder);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(argv[1], ways[i].name) == 0)
            return ways[i].run();
    return 2;
}
