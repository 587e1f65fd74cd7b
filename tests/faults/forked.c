/* A program that forks in one thread while another thread looks up a function for the first time, so that the
 * hook exchanges the driver's slots. In the child, either all slots or none must have been exchanged, and the
 * child's calls must return. One of the threads waits at a test point:
 *
 *   forked exchange   the look-up waits in the middle of the exchange, until the other thread has to wait or
 *                     has forked
 *   forked fork       the fork waits after it has begun, until the look-up has returned */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 100 };

static void *driver;

struct worker {
    void (*work)(void);
    pthread_t thread;
    _Atomic pid_t number;
    _Atomic bool has_ended;
};

static char state_of(pid_t thread)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd < 0 ? 0 : read(fd, line, sizeof(line) - 1);
    close(fd);
    const char *name_end = bytes > 0 ? strrchr(line, ')') : NULL;
    return name_end ? name_end[2] : '?';
}

static void *work(void *data)
{
    struct worker *worker = data;
    worker->number = (pid_t)syscall(SYS_gettid);
    worker->work();
    worker->has_ended = true;
    return NULL;
}

/* Starts the worker, and returns once it is sleeping or has finished. */
static void start(struct worker *worker)
{
    if (pthread_create(&worker->thread, NULL, work, worker) != 0)
        exit(2);
    while (!worker->has_ended && (worker->number == 0 || state_of(worker->number) != 'S'))
        usleep(1000);
}

static void look_up(void)
{
    dlsym(driver, "cuInit");
}

static void call(void)
{
    int (*get)(int *version) = (int (*)(int *))dlsym(driver, "cuDriverGetVersion");
    for (int i = 0, version; i < CALLS; i++) {
        if (get(&version) != 0)
            exit(3);
    }
}

static void fork_once(void)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        unsetenv("CUDATRACE_TEST_POINT"); /* in the child, no thread would end the wait */
        call();
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        exit(4);
}

int main(int argc, char **argv)
{
    struct worker looks = { look_up }, forks = { fork_once };
    const bool in_exchange = argc > 1 && strcmp(argv[1], "exchange") == 0;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        return 2;
    if (in_exchange)
        start(&looks);
    start(&forks);
    if (!in_exchange)
        look_up();
    unsetenv("CUDATRACE_TEST_POINT");
    if (in_exchange)
        pthread_join(looks.thread, NULL);
    pthread_join(forks.thread, NULL);
    call();
    puts("ok");
    return 0;
}
