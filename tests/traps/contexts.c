/* A program whose signal handler makes calls while the C library is in the middle of its work. In each round,
 * a tracer forks a process, stops it at an instruction of the C library or the loader, and sends a signal.
 * The handler's calls take one of the hook's slow paths. They must allocate no memory and create no thread.
 *
 *     contexts WORK PATH ROUNDS
 *
 * WORK is what the signal interrupts: allocator, loader, or fork. The calls of fork handlers must do without
 * memory and threads, too. PATH:
 *   first   the handler's calls are the first of the process, and make its ring grow
 *   told    at the handler's call, the process notices what $TEST_TELL has done; the argument is its PID
 *   exit    the handler calls _exit() */
#include "cuda_min.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAILED = 9, KEYS = 40, CALLS = 8000 };

static __thread bool is_guarded; /* in a handler */
static bool begins, exits;

static void fail(const char *why)
{
    if (write(STDOUT_FILENO, why, strlen(why)) > 0)
        _exit(FAILED);
}

/* ---- the allocator, which also serves the C library and the loader ---- */

#define ALLOCATOR(result, name, parameters, arguments)                                                       \
    extern result __libc_##name parameters;                                                                  \
    result name parameters                                                                                   \
    {                                                                                                        \
        if (is_guarded)                                                                                      \
            fail(#name " in a handler\n");                                                                   \
        return __libc_##name arguments;                                                                      \
    }
ALLOCATOR(void *, malloc, (size_t bytes), (bytes))
ALLOCATOR(void *, calloc, (size_t count, size_t bytes), (count, bytes))
ALLOCATOR(void *, realloc, (void *block, size_t bytes), (block, bytes))
ALLOCATOR(void, free, (void *block), (block))

static nlink_t threads(void)
{
    struct stat tasks = { 0 };
    stat("/proc/self/task", &tasks);
    return tasks.st_nlink;
}

static void call_guarded(int calls)
{
    const bool before = is_guarded;
    const nlink_t count = threads();
    int version;
    is_guarded = true;
    for (int i = 0; i < calls; i++)
        cuDriverGetVersion(&version);
    if (threads() != count)
        fail("a thread created in a handler\n");
    is_guarded = before;
}

static void on_signal(int number)
{
    (void)number;
    const int error = errno;
    call_guarded(begins ? CALLS : 1);
    if (exits)
        _exit(0);
    errno = error;
}

static void on_fork(void)
{
    call_guarded(1);
}

/* ---- work ---- */

static void use_allocator(void)
{
    enum { MANY = 3000, LARGE = 70000 };
    char *blocks[] = { malloc(MANY), calloc(1, LARGE), malloc(LARGE) };
    blocks[0] = realloc(blocks[0], 2 * (size_t)MANY);
    for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++)
        free(blocks[i]);
}

static void use_loader(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    if (!driver || !dlsym(driver, "cuInit") || dlsym(driver, "none") || !dlerror() || dlclose(driver) != 0)
        fail("the loader's results are wrong\n");
}

static void use_fork(void)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0)
        _exit(3);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 3)
        fail("the child ended wrongly\n");
}

static void *idle(void *unused)
{
    for (;;)
        pause();
    return unused;
}

/* Stops for the tracer before and after its work. A second thread makes the C library use its locks. */
static void take_part(void (*work)(void), bool is_told)
{
    pthread_t thread;
    int version = 0;
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    if (pthread_create(&thread, NULL, idle, NULL) != 0)
        fail("no thread\n");
    if (!begins && cuDriverGetVersion(&version) != 0)
        fail("the first call failed\n");
    if (is_told)
        raise(SIGTRAP);
    raise(SIGTRAP);
    work();
    raise(SIGTRAP);
    work();
    if (cuDriverGetVersion(&version) != 0 || version <= 0)
        fail("the last call failed\n");
    exit(0);
}

/* ---- the tracer ---- */

static struct {
    uintptr_t from, to;
} library[2];

static int find_library(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    static int found;
    (void)bytes, (void)unused;
    const bool is_wanted = strstr(info->dlpi_name, "libc.so") || strstr(info->dlpi_name, "ld-linux");
    for (int i = 0; is_wanted && found < 2 && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
            library[found].from = info->dlpi_addr + part->p_vaddr;
            library[found++].to = info->dlpi_addr + part->p_vaddr + part->p_memsz;
        }
    }
    return 0;
}

static bool is_within(pid_t program)
{
    struct user_regs_struct at;
    ptrace(PTRACE_GETREGS, program, 0, &at);
    return (at.rip >= library[0].from && at.rip < library[0].to) ||
           (at.rip >= library[1].from && at.rip < library[1].to);
}

static int await_stop(pid_t program)
{
    int status = 0;
    waitpid(program, &status, 0);
    while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGCHLD) {
        ptrace(PTRACE_CONT, program, 0, 0);
        waitpid(program, &status, 0);
    }
    return status;
}

static bool was_raised(pid_t program)
{
    siginfo_t why;
    return ptrace(PTRACE_GETSIGINFO, program, 0, &why) == 0 && why.si_code == SI_TKILL;
}

static int go_on(pid_t program, int signal)
{
    ptrace(PTRACE_CONT, program, 0, signal);
    return await_stop(program);
}

/* Steps through the work. Sends the signal at the given instruction, or at none if it is -1. Counts only the
 * instructions in the libraries. Returns the process's status. */
static int step_through(pid_t program, long signal_at, long *steps)
{
    for (*steps = 0;;) {
        if (is_within(program) && (*steps)++ == signal_at)
            return go_on(program, SIGUSR1);
        ptrace(PTRACE_SINGLESTEP, program, 0, 0);
        int status;
        waitpid(program, &status, 0);
        if (!WIFSTOPPED(status) || (WSTOPSIG(status) == SIGTRAP && was_raised(program)))
            return status;
    }
}

static void tell(pid_t program)
{
    char command[1024];
    snprintf(command, sizeof(command), "%s %d >/dev/null", getenv("TEST_TELL"), program);
    if (system(command) != 0)
        fail("$TEST_TELL failed\n");
}

/* Returns the number of instructions in the work up to the signal. */
static long play(void (*work)(void), bool is_told, long signal_at)
{
    const pid_t program = fork();
    if (program == 0)
        take_part(work, is_told);
    await_stop(program);
    if (is_told && signal_at >= 0)
        tell(program);
    if (is_told)
        go_on(program, 0);
    long steps;
    int status = step_through(program, signal_at, &steps);
    if (WIFSTOPPED(status))
        status = go_on(program, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        printf("at instruction %ld: status %#x\n", signal_at, (unsigned)status);
        exit(1);
    }
    return steps;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    void (*const work)(void) = strcmp(argv[1], "allocator") == 0 ? use_allocator
                               : strcmp(argv[1], "loader") == 0  ? use_loader
                                                                 : use_fork;
    const bool is_told = strcmp(argv[2], "told") == 0;
    const long rounds = atol(argv[3]);
    begins = strcmp(argv[2], "first") == 0;
    exits = strcmp(argv[2], "exit") == 0;
    for (int i = 0; i < KEYS; i++) {
        pthread_key_t key;
        pthread_key_create(&key, NULL);
    }
    signal(SIGUSR1, on_signal);
    dl_iterate_phdr(find_library, NULL);
    work();
    if (work == use_fork)
        pthread_atfork(on_fork, on_fork, on_fork);
    const long steps = play(work, is_told, -1);
    for (long i = 0; i < rounds; i++)
        play(work, is_told, i * steps / rounds);
    printf("%s %s: %s\n", argv[1], argv[2], steps > 50 ? "played" : "too few instructions");
    return 0;
}
