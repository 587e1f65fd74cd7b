/* launcher.c: loads kernels in every way, prints "ready", and then obeys commands on its input. `attach` may
 * come after that, so that the hook sees only the launches. The program prints each command when it has been
 * carried out.
 *
 *   version   makes a call without a kernel
 *   launch    launches all kernels
 *   thread    launches all kernels in another thread
 *   capture   launches "captured" on a stream that is being captured
 *   handler   launches "in_handler" in a signal handler
 *   outside   launches "in_handler" outside of it
 *   filter    forbids itself to open files
 *   unload    unloads the module and the library, and loads others. Gets all functions but one without the
 *             hook, as libraries that use cuGetExportTable do. Prints whether the driver has returned a
 *             handle that an unloaded function had. */
#include "simcuda_verify.h"
#include "workload.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { ERRNO_BEFORE = 77, HANDLES = 5 };

static CUmodule module;
static CUlibrary library;
static void *handles[HANDLES];
static CUfunction captured, in_handler;
static CUstream stream;

static void launch_on(void *handle, CUstream on)
{
    errno = ERRNO_BEFORE;
    OK(cuLaunchKernel((CUfunction)handle, 1, 1, 1, 1, 1, 1, 0, on, NULL, NULL));
    ENSURE(errno == ERRNO_BEFORE);
}

static CUfunction function_of(const char *name)
{
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

static CUkernel kernel_of(const char *name)
{
    CUkernel kernel;
    OK(cuLibraryGetKernel(&kernel, library, name));
    return kernel;
}

static void load(void)
{
    OK(cuModuleLoadData(&module, "image"));
    OK(cuLibraryLoadData(&library, "image", NULL, NULL, 0, NULL, NULL, 0));
}

static void load_first(void)
{
    CUfunction function;
    load();
    handles[0] = function_of("function");
    handles[1] = function_of("another_function");
    handles[2] = kernel_of("kernel");
    handles[3] = kernel_of("another_kernel");
    OK(cuKernelGetFunction(&function, kernel_of("of_kernel")));
    handles[4] = function;
    captured = function_of("captured");
    in_handler = function_of("in_handler");
}

/* A function of the driver itself, as libraries obtain it from cuGetExportTable. */
static CUfunction hidden_function(const char *name)
{
    CUfunction function;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    ENSURE(driver);
    simcuda_inner_of *inner = (simcuda_inner_of *)(uintptr_t)dlsym(driver, "simcuda_inner_function");
    ENSURE(inner);
    CUresult (*get)(CUfunction *, CUmodule, const char *) =
        (CUresult(*)(CUfunction *, CUmodule, const char *))inner("cuModuleGetFunction");
    OK(get(&function, module, name));
    return function;
}

static void do_version(void)
{
    int version;
    OK(cuDriverGetVersion(&version));
}

static void do_launch(void)
{
    for (int i = 0; i < HANDLES; i++)
        launch_on(handles[i], NULL);
}

static void *launch_in_thread(void *context)
{
    OK(cuCtxSetCurrent((CUcontext)context));
    do_launch();
    return NULL;
}

static void do_thread(void)
{
    pthread_t thread;
    CUcontext context;
    OK(cuCtxGetCurrent(&context));
    ENSURE(pthread_create(&thread, NULL, launch_in_thread, context) == 0);
    ENSURE(pthread_join(thread, NULL) == 0);
}

static void do_capture(void)
{
    CUgraph graph;
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch_on(captured, stream);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));
}

static void on_signal(int number)
{
    (void)number;
    launch_on(in_handler, NULL);
}

static void do_handler(void)
{
    ENSURE(signal(SIGUSR1, on_signal) != SIG_ERR);
    ENSURE(raise(SIGUSR1) == 0);
}

static void do_outside(void)
{
    launch_on(in_handler, NULL);
}

static void do_filter(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    ENSURE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    ENSURE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void do_unload(void)
{
    void *before[HANDLES];
    bool is_same = false;
    memcpy(before, handles, sizeof before);
    OK(cuModuleUnload(module));
    OK(cuLibraryUnload(library));
    load();
    handles[0] = function_of("loaded_later");
    for (int i = 1; i < HANDLES; i++) {
        char name[16];
        snprintf(name, sizeof name, "hidden_%d", i);
        handles[i] = hidden_function(name);
        for (int j = 0; j < HANDLES; j++)
            is_same |= handles[i] == before[j];
    }
    printf("same %d\n", is_same);
}

static const struct {
    const char *name;
    void (*carry_out)(void);
} commands[] = {
    { "version\n", do_version }, { "launch\n", do_launch },   { "thread\n", do_thread },
    { "capture\n", do_capture }, { "handler\n", do_handler }, { "outside\n", do_outside },
    { "unload\n", do_unload },   { "filter\n", do_filter },
};

/* The program needs no driver function that drivers older than CUDA 12.3 lack. It therefore does not use
 * driver.c. */
int main(void)
{
    char line[16];
    CUcontext context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&stream, 0));
    load_first();
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
            if (strcmp(line, commands[i].name) == 0)
                commands[i].carry_out();
        }
        fputs(line, stdout);
        fflush(stdout);
    }
    return 0;
}
