/* churn.c: creates and destroys threads, modules, libraries and forked children, as a long-running job would.
 * Some kernel names are repeated, and others are new each time. The driver reuses a released handle for the
 * next object.
 *
 * After a tenth of each phase, at the end of the phase, and occasionally in between, the program prints "NAME
 * PERCENT" and waits for a line, so that a test can examine it from outside. The launches depend only on the
 * options:
 *
 *   each thread        "common" once
 *   module i of M      "common" once and "module_<i>" twice; that name has 4096 bytes where i % 50 == 0
 *   library i of M     "library_<i % 100>" once as a kernel and once as its function
 *   child i of K       "common" of the parent once and its own "child_<i>" once */
#include "workload.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAME_BYTES = 4096, LONG_EACH = 50, LIBRARY_NAMES = 100, WARM_ROUNDS = 10, PACE = 500 };

static long long threads = 1000, modules = 1000, forks = 10, warm = 5000, via = VIA_LINKED;

static const struct option_row options[] = {
    NUMBER_OPTION("threads", "threads, one after the other", &threads, 0, 1 << 30),
    NUMBER_OPTION("modules", "modules, and as many libraries", &modules, 0, 1 << 30),
    NUMBER_OPTION("forks", "children, one after the other", &forks, 0, 1 << 30),
    NUMBER_OPTION("warm", "calls of each thread before all that", &warm, 0, 1 << 30),
    VIA_OPTION(&via),
    { .name = NULL },
};

static CUcontext context;
static CUmodule module;
static CUfunction common;

static void launch(CUfunction function)
{
    OK(cu.LaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
}

static void point(const char *phase, int percent)
{
    char line[16];
    OK(cu.CtxSynchronize());
    printf("%s %d\n", phase, percent);
    fflush(stdout);
    ENSURE(fgets(line, sizeof line, stdin));
}

/* "pace" is printed often, so that a tracer that is drained each time needs room for at most PACE rounds. */
static void point_at(const char *phase, long long done, long long all)
{
    if (done % PACE == 0)
        point("pace", 0);
    if (done == all || done == all / 10)
        point(phase, done == all ? 100 : 10);
}

/* Makes a tracer's rings wrap around once, and makes the tracer create its tables. */
static void *make_calls(void *unused)
{
    CUcontext current;
    for (long long i = 0; i < warm; i++)
        OK(cu.CtxGetCurrent(&current));
    return unused;
}

static void warm_up(void)
{
    for (int i = 1; i <= WARM_ROUNDS; i++) {
        pthread_t thread;
        make_calls(NULL);
        ENSURE(pthread_create(&thread, NULL, make_calls, NULL) == 0 && pthread_join(thread, NULL) == 0);
        point("warm", i * 100 / WARM_ROUNDS);
    }
}

static void *body(void *data)
{
    char name[16];
    snprintf(name, sizeof name, "churn-%lld", *(const long long *)data % 1000);
    pthread_setname_np(pthread_self(), name);
    OK(cu.CtxSetCurrent(context));
    launch(common);
    return NULL;
}

static void run_threads(void)
{
    for (long long i = 1; i <= threads; i++) {
        pthread_t thread;
        ENSURE(pthread_create(&thread, NULL, body, &i) == 0 && pthread_join(thread, NULL) == 0);
        point_at("threads", i, threads);
    }
}

/* Returns whether the handle is the same as in the previous round. A tracer must not confuse the two
 * objects. */
static bool use_module(const char *name, CUfunction *before)
{
    CUmodule loaded;
    CUfunction function, again;
    OK(cu.ModuleLoadData(&loaded, "image"));
    OK(cu.ModuleGetFunction(&function, loaded, name));
    OK(cu.ModuleGetFunction(&again, loaded, "common"));
    launch(function);
    launch(again);
    launch(function);
    OK(cu.ModuleUnload(loaded));
    const bool reused = function == *before || again == *before;
    *before = function;
    return reused;
}

static bool use_library(const char *name, CUkernel *before)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    OK(cu.LibraryLoadData(&library, "image", NULL, NULL, 0, NULL, NULL, 0));
    OK(cu.LibraryGetKernel(&kernel, library, name));
    OK(cu.KernelGetFunction(&function, kernel));
    launch((CUfunction)kernel);
    launch(function);
    OK(cu.LibraryUnload(library));
    const bool reused = kernel == *before;
    *before = kernel;
    return reused;
}

static void run_modules(void)
{
    static char name[NAME_BYTES + 1];
    CUfunction function = NULL;
    CUkernel kernel = NULL;
    long long reused = 0;
    for (long long i = 1; i <= modules; i++) {
        memset(name, 'x', NAME_BYTES);
        const int written = snprintf(name, sizeof name, "module_%lld", i);
        if (i % LONG_EACH == 0)
            name[written] = '_';
        reused += use_module(name, &function);
        snprintf(name, sizeof name, "library_%lld", i % LIBRARY_NAMES);
        reused += use_library(name, &kernel);
        point_at("modules", i, modules);
    }
    ENSURE(reused >= 2 * (modules - 1));
}

static void child(long long i)
{
    char name[32];
    CUfunction none = NULL;
    snprintf(name, sizeof name, "child_%lld", i);
    launch(common);
    OK(cu.ModuleLoadData(&module, "image"));
    OK(cu.ModuleGetFunction(&none, module, name));
    launch(none);
    OK(cu.ModuleUnload(module));
    _exit(0);
}

static void run_forks(void)
{
    for (long long i = 1; i <= forks; i++) {
        int status = -1;
        const pid_t pid = fork();
        if (pid == 0)
            child(i);
        ENSURE(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
        point_at("forks", i, forks);
    }
}

int main(int argc, char **argv)
{
    options_read(argc, argv, "Threads, modules and children that come and go by the thousand.", options);
    driver_open((enum via)via);
    context = driver_start();
    OK(cu.ModuleLoadData(&module, "image"));
    OK(cu.ModuleGetFunction(&common, module, "common"));
    warm_up();
    run_threads();
    run_modules();
    run_forks();
    printf("churn: ok\n");
    return 0;
}
