/* attached.c: a program that `attach` attaches to while it is running. Options can put the program into any
 * state that might be disturbed by stopping the program, by a thunk, or by a library that is loaded later.
 * The program checks its results and errno, signals that are ignored, blocked and handled, and system calls
 * that sleep and must not return early.
 *
 * The program prints "ready". Depending on its options, the program then works until SIGTERM, makes as many
 * calls as each line of its input requests, or sleeps in one system call. The sleep ends when a line or
 * SIGUSR2 arrives, or after a second. When the program exits, it prints a sum. */
#include "workload.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ERRNO_BEFORE = 77, THREADS_MOST = 1000 };

static volatile sig_atomic_t ended, execs;
static _Atomic unsigned long handled;
static char **arguments;

static void on_term(int number)
{
    (void)number;
    ended = 1;
}

static void on_user(int number)
{
    (void)number;
    execs = 1;
}

static void on_alarm(int number)
{
    (void)number;
    handled++;
}

static void on_fault(int number)
{
    (void)number;
    _exit(99);
}

/* ---- work between two calls ---- */

static void do_nothing(void) {}

static void do_allocate(void)
{
    void *volatile blocks[16];
    for (size_t i = 0; i < 16; i++)
        blocks[i] = malloc((size_t)100 << i);
    for (size_t i = 0; i < 16; i++)
        free(blocks[i]);
}

static void do_load(void)
{
    void *library = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library)
        dlclose(library);
    ENSURE(!dlsym(RTLD_DEFAULT, "no_such_function"));
    ENSURE(dlerror());
}

static void do_fork(void)
{
    int status = 0, count;
    const pid_t child = fork();
    if (child == 0)
        _exit(cu.DriverGetVersion(&count) == CUDA_SUCCESS && dlopen("libutil.so.1", RTLD_NOW) ? 0 : 1);
    ENSURE(child > 0 && waitpid(child, &status, 0) == child);
    ENSURE(status == 0);
}

static void do_vfork(void)
{
    int status = 0;
    const pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    ENSURE(child > 0 && waitpid(child, &status, 0) == child);
    ENSURE(status == 0);
}

static void set_alarm(long us)
{
    ENSURE(setitimer(ITIMER_REAL, &(struct itimerval){ { 0, us }, { 0, us } }, NULL) == 0);
}

static void do_exec(void)
{
    static char calls[] = "calls";
    if (!execs)
        return;
    arguments[2] = calls;
    set_alarm(0); /* the timer would outlive its handler */
    execv("/proc/self/exe", arguments);
    ENSURE(false);
}

static void do_yield(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
}

/* Leaves room for only a few mappings, so that only part of a library can be mapped. */
static void do_crowd(void)
{
    enum { LEFT = 6 };
    static void *last[LEFT];
    static bool is_full;
    for (size_t i = 0; !is_full; i++) {
        void *page = mmap(NULL, 1, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        is_full = page == MAP_FAILED;
        for (size_t n = 0; is_full && n < LEFT; n++)
            munmap(last[n], 1);
        last[i % LEFT] = page;
    }
}

/* ---- system calls that sleep; these functions return the result, and set errno ---- */

static long sleep_read(void)
{
    char line[16];
    return (long)read(STDIN_FILENO, line, 1);
}

static long sleep_poll(void)
{
    return poll(&(struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN }, 1, -1);
}

static long sleep_ppoll(void)
{
    sigset_t none;
    sigemptyset(&none);
    return ppoll(&(struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN }, 1,
                 &(struct timespec){ .tv_sec = 3600 }, &none);
}

static long sleep_select(void)
{
    fd_set files;
    FD_ZERO(&files);
    FD_SET(STDIN_FILENO, &files);
    return select(1, &files, NULL, NULL, &(struct timeval){ .tv_sec = 3600 });
}

static long sleep_epoll(void)
{
    struct epoll_event event = { .events = EPOLLIN };
    const int fd = epoll_create1(EPOLL_CLOEXEC);
    ENSURE(fd >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, STDIN_FILENO, &event) == 0);
    return epoll_wait(fd, &event, 1, -1);
}

static long sleep_epoll_pwait(void)
{
    struct epoll_event event = { .events = EPOLLIN };
    sigset_t none;
    sigemptyset(&none);
    const int fd = epoll_create1(EPOLL_CLOEXEC);
    ENSURE(fd >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, STDIN_FILENO, &event) == 0);
    return epoll_pwait(fd, &event, 1, -1, &none);
}

static long sleep_signal(void)
{
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR2); /* the signal is blocked */
    return sigwaitinfo(&wanted, NULL) == SIGUSR2 ? 0 : -1;
}

static void *read_line(void *unused)
{
    (void)unused;
    sleep_read();
    return NULL;
}

static long sleep_futex(void)
{
    pthread_t reader;
    ENSURE(pthread_create(&reader, NULL, read_line, NULL) == 0);
    errno = pthread_join(reader, NULL);
    return errno ? -1 : 0;
}

static long sleep_wait(void)
{
    int status;
    const pid_t child = fork();
    if (child == 0)
        _exit((int)sleep_read());
    const long got = waitpid(child, &status, 0);
    return got == child ? 0 : -1;
}

/* Receives a line of input through a socket with a timeout, because the kernel does not restart system calls
 * on such a socket. */
static long sleep_socket(void)
{
    const struct timeval hour = { .tv_sec = 3600 };
    int ends[2];
    char byte = 0;
    ENSURE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    ENSURE(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &hour, sizeof(hour)) == 0);
    if (fork() == 0)
        _exit(sleep_read() == 1 && write(ends[1], &byte, 1) == 1 ? 0 : 1);
    return (long)read(ends[0], &byte, 1);
}

/* The kernel also does not restart system calls whose timeout is in read-only memory. */
static long sleep_constant(void)
{
    static const struct timespec hour = { .tv_sec = 3600 };
    fd_set files;
    FD_ZERO(&files);
    FD_SET(STDIN_FILENO, &files);
    return syscall(SYS_pselect6, 1, &files, NULL, NULL, &hour, NULL);
}

static long sleep_vfork(void)
{
    int status = 0;
    const pid_t child = vfork();
    if (child == 0) {
        sleep_read();
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

static long sleep_nanosleep(void)
{
    struct timespec begun, over, left;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    const int got = nanosleep(&(struct timespec){ .tv_sec = 1 }, &left);
    clock_gettime(CLOCK_MONOTONIC, &over);
    const int64_t ns = (over.tv_sec - begun.tv_sec) * 1000000000LL + over.tv_nsec - begun.tv_nsec;
    return got == 0 && ns < 1000000000 ? -2 : got;
}

/* ---- */

static const struct mode {
    const char *name;
    void (*act)(void);
    long (*sleep)(void);
} modes[] = {
    { "calls", do_nothing, NULL },    { "malloc", do_allocate, NULL },
    { "dlopen", do_load, NULL },      { "fork", do_fork, NULL },
    { "vfork", do_vfork, NULL },      { "exec", do_exec, NULL },
    { "paced", do_yield, NULL },      { "read", NULL, sleep_read },
    { "poll", NULL, sleep_poll },     { "ppoll", NULL, sleep_ppoll },
    { "select", NULL, sleep_select }, { "epoll", NULL, sleep_epoll },
    { "signal", NULL, sleep_signal }, { "epoll_pwait", NULL, sleep_epoll_pwait },
    { "futex", NULL, sleep_futex },   { "nanosleep", NULL, sleep_nanosleep },
    { "wait", NULL, sleep_wait },     { "socket", NULL, sleep_socket },
    { "crowd", do_crowd, NULL },      { "constant", NULL, sleep_constant },
    { "vforked", NULL, sleep_vfork },
};
enum { MODES = sizeof(modes) / sizeof(modes[0]) };

static const struct mode *mode;

static void *work(void *data)
{
    unsigned long *calls = data;
    int count = 0;
    while (!ended) {
        mode->act();
        errno = ERRNO_BEFORE;
        OK(cu.DriverGetVersion(&count));
        ENSURE(errno == ERRNO_BEFORE && count > 0);
        ++*calls;
    }
    return NULL;
}

/* For each line that contains a number, each thread makes that number of calls. */
static pthread_barrier_t begins, is_done;
static int step_calls;

static void *work_in_steps(void *unused)
{
    int version;
    (void)unused;
    for (;;) {
        pthread_barrier_wait(&begins);
        if (step_calls == 0)
            return NULL;
        for (int i = 0; i < step_calls; i++)
            OK(cu.DriverGetVersion(&version));
        pthread_barrier_wait(&is_done);
    }
}

static void step(int threads)
{
    static pthread_t ids[THREADS_MOST];
    char line[16];
    ENSURE(pthread_barrier_init(&begins, NULL, (unsigned)threads + 1) == 0);
    ENSURE(pthread_barrier_init(&is_done, NULL, (unsigned)threads + 1) == 0);
    for (int i = 0; i < threads; i++)
        ENSURE(pthread_create(&ids[i], NULL, work_in_steps, NULL) == 0);
    puts("ready");
    do {
        fflush(stdout);
        step_calls = fgets(line, sizeof line, stdin) ? atoi(line) : 0;
        pthread_barrier_wait(&begins);
        if (step_calls > 0)
            pthread_barrier_wait(&is_done);
        printf("made %d\n", step_calls);
    } while (step_calls > 0);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    ENSURE(sigaction(number, &action, NULL) == 0);
}

/* Sets up signal handling as a program might. `attach` must not change these settings. */
static void set_signals(void)
{
    sigset_t blocked;
    handle(SIGTERM, on_term);
    handle(SIGUSR1, on_user);
    handle(SIGALRM, on_alarm);
    handle(SIGSEGV, on_fault);
    handle(SIGTRAP, SIG_IGN);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigaddset(&blocked, SIGILL);
    ENSURE(sigprocmask(SIG_SETMASK, &blocked, NULL) == 0);
}

static void check_signals(void)
{
    sigset_t blocked;
    struct sigaction trap, fault, illegal;
    ENSURE(sigprocmask(SIG_SETMASK, NULL, &blocked) == 0);
    for (int number = 1; number < 32; number++)
        ENSURE(sigismember(&blocked, number) == (number == SIGUSR2 || number == SIGILL));
    sigaction(SIGTRAP, NULL, &trap);
    sigaction(SIGSEGV, NULL, &fault);
    sigaction(SIGILL, NULL, &illegal);
    ENSURE(trap.sa_handler == SIG_IGN && fault.sa_handler == on_fault && illegal.sa_handler == SIG_DFL);
}

static void work_in_threads(int threads)
{
    static pthread_t ids[THREADS_MOST];
    static unsigned long calls[THREADS_MOST];
    unsigned long sum = 0;
    for (int i = 1; i < threads; i++)
        ENSURE(pthread_create(&ids[i], NULL, work, &calls[i]) == 0);
    puts("ready");
    fflush(stdout);
    /* Raise a signal at a high rate. */
    set_alarm(3000);
    work(&calls[0]);
    set_alarm(0);
    for (int i = 0; i < threads; i++) {
        if (i > 0)
            pthread_join(ids[i], NULL);
        ENSURE(calls[i] > 0);
        sum += calls[i];
    }
    ENSURE(handled > 0);
    printf("calls %lu\n", sum);
}

static void sleep_once(void)
{
    int count;
    puts("ready");
    fflush(stdout);
    errno = 0;
    const long result = mode->sleep();
    const int error = result < 0 ? errno : 0;
    OK(cu.DriverGetVersion(&count));
    printf("woke %ld %s\n", result, result < 0 ? strerror(error) : "fine");
}

int main(int argc, char **argv)
{
    arguments = argv;
    for (size_t i = 0; argc == 4 && i < MODES; i++) {
        if (strcmp(argv[2], modes[i].name) == 0)
            mode = &modes[i];
    }
    const int threads = argc == 4 ? atoi(argv[3]) : 0;
    const bool denied =
        argc == 4 && strcmp(argv[2], "denied") == 0; /* steps, without the processor's counter */
    const bool steps = denied || (argc == 4 && strcmp(argv[2], "steps") == 0);
    if ((!mode && !steps) || strcmp(argv[1], "--do") != 0 || threads < 1 || threads > THREADS_MOST) {
        puts("usage: attached --do MODE THREADS: makes driver calls, or sleeps in a system call, and checks "
             "both");
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    driver_open(VIA_LINKED);
    OK(cu.Init(0));
    set_signals();
    ENSURE(!denied || prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0);
    if (steps)
        step(threads);
    else if (mode->act)
        work_in_threads(threads);
    else
        sleep_once();
    check_signals();
    return 0;
}
