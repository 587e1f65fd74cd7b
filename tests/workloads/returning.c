/* returning.c: a program whose calls the kernel cannot follow to their return. In the mode "dispatching", the
 * thread's system calls are forbidden during a call (Syscall User Dispatch). In the mode "above", a signal
 * handler makes calls on an alternate stack above the thread's stack, while the thread is in a call.
 *
 * The program prints "ready", or "unsupported". For each line of its input, it makes as many such calls as
 * the line requests. */
#include "workload.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

enum { SET_SYSCALL_USER_DISPATCH = 59, DISPATCH_ON = 1, ALLOW = 0, BLOCK = 1, STACK_BYTES = 1 << 20 };

static volatile char selector = ALLOW;
static volatile sig_atomic_t is_calling, handled;
static int version;

static void call(void)
{
    int answer = 0;
    OK(cu.DriverGetVersion(&answer));
    ENSURE(answer == version);
}

/* ---- dispatching ---- */

static void on_system_call(int number)
{
    (void)number;
    _exit(99);
}

static bool dispatch(void)
{
    signal(SIGSYS, on_system_call);
    return prctl(SET_SYSCALL_USER_DISPATCH, DISPATCH_ON, 0, 0, &selector) == 0;
}

static void call_forbidden(long times)
{
    for (long i = 0; i < times; i++) {
        int answer = 0;
        selector = BLOCK;
        const CUresult result = cu.DriverGetVersion(&answer);
        selector = ALLOW;
        OK(result);
        ENSURE(answer == version);
    }
}

/* ---- above ---- */

static void on_alarm(int number)
{
    (void)number;
    if (!is_calling)
        return;
    call();
    handled++;
}

static void call_above(long times)
{
    const struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { { 0, 0 }, { 0, 0 } };
    handled = 0;
    setitimer(ITIMER_REAL, &often, NULL);
    while (handled < times) {
        is_calling = 1;
        call();
        is_calling = 0;
    }
    setitimer(ITIMER_REAL, &never, NULL);
}

/* ---- the thread ---- */

static bool is_dispatching, is_supported = true;
static void *alternate;

static void *work(void *unused)
{
    char line[64];
    (void)unused;
    if (is_dispatching) {
        is_supported = dispatch();
    } else {
        ENSURE(sigaltstack(&(stack_t){ .ss_sp = alternate, .ss_size = STACK_BYTES }, NULL) == 0);
        struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_ONSTACK | SA_RESTART };
        ENSURE(sigaction(SIGALRM, &action, NULL) == 0);
    }
    puts(is_supported ? "ready" : "unsupported");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        const long times = strtol(line, NULL, 10);
        if (is_dispatching)
            call_forbidden(times);
        else
            call_above(times);
        printf("made %ld\n", times);
        fflush(stdout);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    is_dispatching = argc > 2 && strcmp(argv[2], "dispatching") == 0;
    if (argc < 3 || strcmp(argv[1], "--do") != 0 || (!is_dispatching && strcmp(argv[2], "above") != 0)) {
        puts("usage: returning --do dispatching|above: makes calls whose return cannot be probed");
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    driver_open(VIA_LINKED);
    OK(cu.Init(0));
    OK(cu.DriverGetVersion(&version));
    uint8_t *stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ENSURE(stacks != MAP_FAILED);
    alternate = stacks + STACK_BYTES;
    pthread_attr_t attributes;
    pthread_t thread;
    ENSURE(pthread_attr_init(&attributes) == 0 &&
           pthread_attr_setstack(&attributes, stacks, STACK_BYTES) == 0);
    ENSURE(pthread_create(&thread, &attributes, work, NULL) == 0);
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    ENSURE(pthread_join(thread, NULL) == 0);
    return 0;
}
