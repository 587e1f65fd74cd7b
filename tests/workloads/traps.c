/* Things that programs do and that a preloaded library must not disturb, one for each name. Prints what it
 * saw: the same with and without the hook. */
#include "cuda_min.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static CUcontext current;
static CUresult call(void)
{
    return cuCtxGetCurrent(&current);
}

/* A thread that is to be cancelled makes its first call: a call is no point of cancellation, and what comes
 * after it goes on. */
static void *cancelled(void *unused)
{
    pthread_cancel(pthread_self());
    printf("call in a cancelled thread: %d\n", call());
    fflush(stdout);
    pthread_testcancel();
    return unused;
}

static void *ordinary(void *unused)
{
    printf("call in the next thread: %d\n", call());
    return unused;
}

static int trap_cancel(void)
{
    void *(*const bodies[])(void *) = { cancelled, ordinary };
    for (size_t i = 0; i < 2; i++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, bodies[i], NULL);
        pthread_join(thread, &result);
        printf("cancelled: %d\n", result == PTHREAD_CANCELED);
    }
    return 0;
}

/* The hook's own look-ups leave no error behind, and the application's error is still there. */
static int trap_dlerror(void)
{
    cuInit(0);
    const char *error = dlerror();
    printf("dlerror after the first call: %s\n", error ? error : "none");
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    printf("a function: %d, ", dlsym(driver, "cuInit") != NULL);
    error = dlerror();
    printf("%s\n", error ? error : "none");
    printf("no function: %d, ", dlsym(driver, "cuNoSuchFunction") != NULL);
    error = dlerror();
    printf("%d\n", error && strstr(error, "cuNoSuchFunction"));
    printf("by default: %d\n", dlsym(RTLD_DEFAULT, "cuInit") != NULL);
    errno = 0;
    call();
    printf("errno: %d\n", errno);
    return 0;
}

/* A jump out of a signal handler leaves the call that it interrupted, in which the simulated driver is
 * blocked. */
static sigjmp_buf out;
static void jump(int number)
{
    siglongjmp(out, number);
}

enum { JUMPS = 20 };

static void *interrupt(void *data)
{
    for (int i = 0; i < JUMPS; i++) {
        char byte;
        FILE *blocked = fopen(getenv("SIMCUDA_BLOCK_NOTIFY"), "r");
        if (!blocked || fread(&byte, 1, 1, blocked) != 1)
            exit(EXIT_FAILURE);
        fclose(blocked);
        pthread_kill(*(pthread_t *)data, SIGUSR1);
    }
    return NULL;
}

static int trap_longjmp(void)
{
    pthread_t self = pthread_self(), thread;
    signal(SIGUSR1, jump);
    pthread_create(&thread, NULL, interrupt, &self);
    for (volatile int i = 0; i < JUMPS; i++) {
        if (sigsetjmp(out, 1) == 0)
            cuCtxSynchronize();
    }
    pthread_join(thread, NULL);
    printf("after the jumps: %d\n", call());
    return 0;
}

/* _exit at the end of a child, exec in another: the parent's statuses are what they said. */
static int trap_exec(void)
{
    call();
    fflush(stdout);
    execl("/proc/self/exe", "traps", "after-exec", (char *)NULL);
    return 1;
}

static int trap_after_exec(void)
{
    printf("after exec: %d\n", call());
    fflush(stdout);
    _exit(41);
}

/* With no descriptor left from before, as daemons leave it, and others in their places. */
static int trap_descriptors(void)
{
    call();
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    FILE *own = tmpfile();
    for (int i = 0; i < 5000; i++)
        call();
    fseek(own, 0, SEEK_END);
    printf("bytes in the program's own file: %ld\n", ftell(own));
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} traps[] = {
    { "cancel", trap_cancel }, { "dlerror", trap_dlerror },       { "longjmp", trap_longjmp },
    { "exec", trap_exec },     { "after-exec", trap_after_exec }, { "descriptors", trap_descriptors },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(traps) / sizeof(traps[0]); i++) {
        if (argc == 2 && strcmp(argv[1], traps[i].name) == 0) {
            const CUresult status = strcmp(argv[1], "dlerror") == 0 ? CUDA_SUCCESS : cuInit(0);
            return status == CUDA_SUCCESS ? traps[i].run() : 1;
        }
    }
    fputs("Usage: traps cancel|dlerror|longjmp|exec|after-exec|descriptors\n", stderr);
    return 2;
}
