/* A program for around_calls.py that uses processes and threads together with the driver. The argument
 * selects one of the uses, and the program prints the results.
 *
 *   around_calls vfork | exits | host | capture | plain LIBCUDA */
#include "cuda_min.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static CUcontext current;
static CUresult call(void)
{
    return cuCtxGetCurrent(&current);
}

static CUcontext start(void)
{
    CUcontext context;
    CUdevice device;
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
        cuCtxSetCurrent(context))
        exit(3);
    return context;
}

/* ---- vfork: the child runs in the parent's memory and thread, without any atfork handlers ---- */

static int trap_vfork(void)
{
    start();
    int statuses = 0;
    for (int i = 0; i < 100; i++) {
        int status = -1;
        call();
        const pid_t child = vfork();
        if (child == 0)
            _exit(i % 7);
        waitpid(child, &status, 0);
        statuses += WEXITSTATUS(status);
        call();
    }
    for (int i = 0; i < 20; i++) {
        int status = -1;
        const pid_t child = vfork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(99);
        }
        waitpid(child, &status, 0);
        statuses += WEXITSTATUS(status);
        call();
    }
    printf("vfork: %d, %d\n", statuses, system("exit 3") >> 8);
    return 0;
}

/* ---- exits: calls in destructors that run after the hook's and after thread-local objects' destructors
 * ---- */

int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
extern void *__dso_handle;
static pthread_key_t key;

static void by_tls(void *what)
{
    (void)what;
    call();
}

/* A key's destructor runs up to four times if it sets the key's value again. */
static void by_key(void *rounds)
{
    call();
    if ((intptr_t)rounds > 1)
        pthread_setspecific(key, (void *)((intptr_t)rounds - 1));
}

static void *thread(void *unused)
{
    __cxa_thread_atexit_impl(by_tls, NULL, &__dso_handle);
    pthread_setspecific(key, (void *)4);
    call();
    return unused;
}

static void by_handler(void)
{
    call();
}

static void by_handler_with(int status, void *unused)
{
    (void)status;
    (void)unused;
    call();
}

static int exits;
__attribute__((destructor)) static void by_destructor(void)
{
    if (exits)
        call();
}

static int trap_exits(void)
{
    start();
    exits = 1;
    pthread_key_create(&key, by_key);
    atexit(by_handler);
    on_exit(by_handler_with, NULL);
    for (int i = 0; i < 10; i++) {
        pthread_t id;
        pthread_create(&id, NULL, thread, NULL);
        pthread_join(id, NULL);
    }
    __cxa_thread_atexit_impl(by_tls, NULL, &__dso_handle); /* destructor for the main thread */
    printf("exits\n");
    return 0;
}

/* ---- host: a callback makes a first call in a driver's thread while another thread waits inside a call
 * ---- */

static int in_callback[2];
static void *from_callback(void *which)
{
    int version = 0;
    size_t a = 0, b = 0;
    in_callback[0] = *(int *)which ? cuDriverGetVersion(&version) : cuMemGetInfo(&a, &b);
    return NULL;
}

/* Creates a thread that makes its first call, and waits until that thread has ended. If the hook held a lock
 * during cuStreamSynchronize, this callback would deadlock. */
static void callback(void *which)
{
    pthread_t other;
    int version;
    in_callback[1] = cuDriverGetVersion(&version) == CUDA_SUCCESS || *(int *)which == 0;
    pthread_create(&other, NULL, from_callback, which);
    pthread_join(other, NULL);
}

static int trap_host(void)
{
    CUstream stream;
    int which = 1;
    start();
    if (cuStreamCreate(&stream, 0) || cuLaunchHostFunc(stream, callback, &which) ||
        cuStreamSynchronize(stream))
        return 1;
    printf("host: %d %d\n", in_callback[0], in_callback[1]);
    return 0;
}

/* ---- capture: the hook itself must not break a capture in the strictest mode ---- */

static CUfunction functions[3];
static CUdeviceptr memory;
static unsigned char bytes[4096];

static void *beside(void *results)
{
    CUcontext context;
    int *result = results;
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    /* While a global capture is in progress, unsafe calls by other threads fail and end the capture. The
     * calls below are safe. */
    result[0] = cuCtxGetCurrent(&context);
    result[1] = cuLaunchKernel(functions[2], 1, 1, 1, 1, 1, 1, 0, (CUstream)2, NULL, NULL);
    return NULL;
}

static int trap_capture(void)
{
    CUmodule module;
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    start();
    if (cuModuleLoadData(&module, "image") || cuModuleGetFunction(&functions[0], module, "captured_first") ||
        cuModuleGetFunction(&functions[1], module, "captured_second") ||
        cuModuleGetFunction(&functions[2], module, "beside") || cuMemAlloc(&memory, sizeof bytes) ||
        cuStreamCreate(&stream, 1))
        return 1;
    for (int mode = 0; mode < 3; mode++) {
        int results[2] = { -1, -1 };
        printf("mode %d: %d", mode, cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode));
        /* Launch a kernel for the first time, by its name, and make a copy without an explicit direction. */
        printf(" %d", cuLaunchKernel(functions[0], 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
        printf(" %d", cuMemcpyHtoDAsync(memory, bytes, sizeof bytes, stream));
        printf(" %d", cuMemcpyDtoDAsync(memory, memory + 2048, 1024, stream));
        pthread_t other;
        pthread_create(&other, NULL, beside, results);
        pthread_join(other, NULL);
        printf(" %d", cuLaunchKernel(functions[1], 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
        printf(", beside %d %d", results[0], results[1]);
        printf(", end %d", cuStreamEndCapture(stream, &graph));
        printf(" %d", cuGraphInstantiate(&exec, graph, 0));
        printf(" %d", cuGraphLaunch(exec, stream));
        printf(" %d\n", cuStreamSynchronize(stream));
        cuGraphExecDestroy(exec);
        cuGraphDestroy(graph);
    }
    return 0;
}

/* ---- plain: loads the driver by its path, as a set-user-ID program must ---- */

static int trap_plain(const char *path)
{
    void *driver = dlopen(path, RTLD_NOW);
    CUresult (*init)(unsigned) = driver ? (CUresult(*)(unsigned))dlsym(driver, "cuInit") : NULL;
    printf("plain: %d as %d\n", init ? (int)init(0) : -1, geteuid() != getuid());
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } traps[] = {
        { "vfork", trap_vfork },
        { "exits", trap_exits },
        { "host", trap_host },
        { "capture", trap_capture },
    };
    if (argc == 3 && strcmp(argv[1], "plain") == 0)
        return trap_plain(argv[2]);
    for (size_t i = 0; i < sizeof traps / sizeof traps[0] && argc == 2; i++)
        if (strcmp(argv[1], traps[i].name) == 0)
            return traps[i].run();
    return 2;
}
