/* threads.c: starts many short-lived threads one after another, and makes calls in places where tracers
 * break: in destructors of thread-specific data, in atexit handlers, in the program's destructors, and in a
 * signal handler that interrupts calls. */
#include "workload.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

static long long count = 100, calls = 10, via = VIA_DLSYM, interval_us = 200;

static const struct option_row options[] = {
    NUMBER_OPTION("count", "threads, one after another", &count, 0, 1 << 30),
    NUMBER_OPTION("calls", "calls of each thread", &calls, 0, 1 << 30),
    NUMBER_OPTION("interval", "microseconds between signals, 0: none", &interval_us, 0, 999999),
    VIA_OPTION(&via),
    { .name = NULL },
};

static CUcontext context;
static pthread_key_t key;
static atomic_long in_handler, in_key_destructor, at_exit;

static void call(void)
{
    CUcontext current;
    int version;
    OK(cu.CtxGetCurrent(&current));
    OK(cu.DriverGetVersion(&version));
    ENSURE(version > 0);
}

/* Neither of these calls takes a lock in the driver, so the handler may make them even if it interrupts
 * another call. */
static void handler(int signal)
{
    const int saved = errno;
    (void)signal;
    call();
    atomic_fetch_add(&in_handler, 1);
    errno = saved;
}

static void key_destructor(void *value)
{
    (void)value;
    call();
    atomic_fetch_add(&in_key_destructor, 1);
}

static void exit_handler(void)
{
    call();
    atomic_fetch_add(&at_exit, 1);
}

/* Runs after all exit handlers, when the summary has already been printed. */
__attribute__((destructor)) static void program_destructor(void)
{
    if (atomic_load(&at_exit) > 0)
        call();
}

static void *work(void *unused)
{
    CUdeviceptr at;
    (void)unused;
    OK(cu.CtxSetCurrent(context));
    pthread_setspecific(key, &key);
    for (long long i = 0; i < calls; i++) {
        errno = E2BIG;
        call();
        ENSURE(errno == E2BIG); /* a successful call must not change the program's errno */
    }
    OK(cu.MemAlloc(&at, 64));
    OK(cu.MemFree(at));
    return NULL;
}

static void signals(long long us)
{
    const struct timeval interval = { .tv_usec = us };
    const struct itimerval timer = { .it_interval = interval, .it_value = interval };
    setitimer(ITIMER_REAL, &timer, NULL);
}

int main(int argc, char **argv)
{
    options_read(argc, argv, "Make driver calls from short-lived threads, destructors and signal handlers.",
                 options);
    driver_open((enum via)via);
    context = driver_start();
    pthread_key_create(&key, key_destructor);
    ENSURE(atexit(exit_handler) == 0);
    const struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    sigaction(SIGALRM, &action, NULL);
    signals(interval_us);
    for (long long i = 0; i < count; i++) {
        pthread_t thread;
        ENSURE(pthread_create(&thread, NULL, work, NULL) == 0 && pthread_join(thread, NULL) == 0);
    }
    /* Even if the threads were fast, at least one signal has been handled when this loop ends. */
    while (interval_us > 0 && atomic_load(&in_handler) == 0)
        call();
    signals(0);
    ENSURE(atomic_load(&in_key_destructor) == count);
    printf("threads: count=%lld signals=%s ok\n", count, interval_us > 0 ? "yes" : "no");
    return 0;
}
