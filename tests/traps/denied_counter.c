/* A thread that makes calls, forbids itself to read the processor's counter, and continues. The first thread
 * makes the same calls meanwhile and afterwards. Ends with status 7.
 *
 *     denied_counter WAY
 *
 *     tsc      with prctl(PR_SET_TSC); a thread that it creates makes calls, too; then allows itself
 *              the counter again
 *     syscall  the same, but with syscall()
 *     range    the same as tsc, but in an open range
 *     fork     the same as tsc, but instead of a thread, it creates a process
 *     prctl    seccomp's strict mode, with prctl()
 *     seccomp  the same, but with syscall(SYS_seccomp)
 *     failed   as with seccomp, but the kernel rejects it */
#include "cuda_min.h"
#include "nvtx_client.h"

#include <dlfcn.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 10 };
static const char *way;

static int is(const char *name)
{
    return strcmp(way, name) == 0;
}

static void make_calls(void)
{
    int count;
    for (int i = 0; i < CALLS; i++)
        cuDeviceGetCount(&count);
}

static void *make_calls_in_thread(void *unused)
{
    make_calls();
    return unused;
}

static void in_thread(void *(*body)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) != 0 || pthread_join(thread, NULL) != 0)
        exit(3);
}

static void in_child(void (*body)(void))
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        body();
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        exit(6);
}

static long set_counter(int mode)
{
    return is("syscall") ? syscall(SYS_prctl, PR_SET_TSC, mode, 0, 0, 0) : prctl(PR_SET_TSC, mode, 0, 0, 0);
}

static long confine(void)
{
    if (is("prctl"))
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
    if (is("seccomp"))
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL);
    if (is("failed"))
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) == -1 ? 0 : 1;
    return set_counter(PR_TSC_SIGSEGV);
}

static void *run(void *unused)
{
    const int in_range = is("range") && nvtx.RangePushA;
    make_calls();
    if (in_range)
        nvtx.RangePushA("a range");
    if (confine() != 0)
        _exit(4);
    make_calls();
    if (in_range)
        nvtx.RangePop();
    if (is("prctl") || is("seccomp")) {
        syscall(SYS_exit, 0); /* strict mode does not allow more */
        __builtin_unreachable();
    }
    if (is("failed"))
        return unused;
    if (is("fork"))
        in_child(make_calls);
    else
        in_thread(make_calls_in_thread);
    if (set_counter(PR_TSC_ENABLE) != 0)
        _exit(5);
    make_calls();
    return unused;
}

int main(int argc, char **argv)
{
    way = argc > 1 ? argv[1] : "";
    if (cuInit(0) != 0)
        return 3;
    if (dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2") && !nvtx_load(RTLD_DEFAULT))
        return 3;
    in_thread(run);
    make_calls();
    printf("done\n");
    return 7;
}
