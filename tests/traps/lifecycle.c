/* A program for lifecycle.py that begins, changes and ends processes, threads and calls. The argument selects
 * one of the ways, and the program prints the results.
 *
 *   lifecycle WAY [SCRATCH FOLDER] */
#include "lifecycle.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>

const char *self, *folder;
CUcontext current;

CUresult call(void)
{
    CUcontext context;
    return cuCtxGetCurrent(&context);
}

void calls(int count)
{
    for (int i = 0; i < count; i++)
        ENSURE(call() == CUDA_SUCCESS);
}

void start(void)
{
    CUdevice device;
    ENSURE(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
           cuDevicePrimaryCtxRetain(&current, device) == CUDA_SUCCESS &&
           cuCtxSetCurrent(current) == CUDA_SUCCESS);
}

pthread_t started(void *(*body)(void *), void *data)
{
    pthread_t thread;
    ENSURE(pthread_create(&thread, NULL, body, data) == 0);
    return thread;
}

void in_thread(void *(*body)(void *), void *data)
{
    ENSURE(pthread_join(started(body, data), NULL) == 0);
}

int status_of(pid_t child)
{
    int status = -1;
    while (waitpid(child, &status, 0) < 0)
        ENSURE(errno == EINTR);
    return status;
}

void be_known(void)
{
    ENSURE(system(getenv("FLUSH")) >= 0);
}

void wait_for_blocked(void)
{
    char byte;
    const int fd = open(getenv("SIMCUDA_BLOCK_NOTIFY"), O_RDONLY | O_CLOEXEC);
    ENSURE(fd >= 0 && read(fd, &byte, 1) == 1);
    close(fd);
}

void call_new(int which)
{
    int number;
    size_t size;
    CUdevice device;
    CUcontext context;
    switch (which % 6) {
    case 0:
        cuDriverGetVersion(&number);
        break;
    case 1:
        cuDeviceGetCount(&number);
        break;
    case 2:
        cuCtxGetDevice(&device);
        break;
    case 3:
        cuDeviceGet(&device, 0);
        break;
    case 4:
        cuMemGetInfo(&size, &size);
        break;
    default:
        cuCtxSetCurrent(cuCtxGetCurrent(&context) ? NULL : context);
    }
}

static atomic_bool stop_busy;

void *one_call(void *unused)
{
    calls(1);
    return unused;
}

static void *busy_takers(void *unused)
{
    while (!atomic_load(&stop_busy))
        in_thread(one_call, NULL);
    return unused;
}

void *busy_caller(void *unused)
{
    while (!atomic_load(&stop_busy))
        calls(100);
    return unused;
}

static void *busy_definer(void *unused)
{
    for (int i = 0; !atomic_load(&stop_busy); i++)
        call_new(i);
    return unused;
}

static void *(*const busy[])(void *) = { busy_takers, busy_caller, busy_definer };
enum { BUSY = sizeof busy / sizeof busy[0] };
static pthread_t busy_threads[BUSY];

void be_busy(void)
{
    for (int i = 0; i < BUSY; i++)
        busy_threads[i] = started(busy[i], NULL);
}

void end_busy(void)
{
    atomic_store(&stop_busy, true);
    for (int i = 0; i < BUSY; i++)
        pthread_join(busy_threads[i], NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } ways[] = {
#define W(name) { #name, way_##name },
        WAYS(W)
#undef W
    };
    if (argc < 2)
        return 2;
    self = argv[0];
    folder = argc > 2 ? argv[2] : ".";
    if (strcmp(argv[1], "end") == 0)
        return end_process(folder);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(argv[1], ways[i].name) == 0)
            return ways[i].run();
    return 2;
}
