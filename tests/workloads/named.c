/* named.c: gives names to threads and driver objects through NVTX, and makes calls with them. */
#include "nvtx_client.h"
#include "workload.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void load_tool(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    nvtx_is_old = true;
    ENSURE(library && nvtx_load(library));
}

static uint32_t own_tid(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

static void call_driver(void)
{
    CUcontext current;
    OK(cu.CtxGetCurrent(&current));
}

static const char *told, *released;

/* For each byte that the test sends, makes a call and answers with the byte. The test starts or stops daemons
 * between these calls. */
static void obey_test(void)
{
    if (!told)
        return;
    const int tell = open(told, O_WRONLY), hear = open(released, O_RDONLY);
    ENSURE(tell >= 0 && hear >= 0);
    for (char byte; read(hear, &byte, 1) == 1;) {
        call_driver();
        ENSURE(write(tell, &byte, 1) == 1);
    }
    ENSURE(close(tell) == 0 && close(hear) == 0);
}

struct worker {
    pthread_t thread;
    sem_t started, go;
    uint32_t tid;
    const char *name; /* the thread's own name, which is set after its first call */
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    worker->tid = own_tid();
    prctl(PR_SET_NAME, "comm", 0, 0, 0);
    sem_post(&worker->started);
    sem_wait(&worker->go);
    call_driver();
    if (worker->name) {
        nvtx.NameOsThreadA(worker->tid, "not yet");
        nvtx.NameOsThreadA(worker->tid, worker->name);
        call_driver();
    }
    return NULL;
}

static void start(struct worker *worker)
{
    ENSURE(sem_init(&worker->started, 0, 0) == 0 && sem_init(&worker->go, 0, 0) == 0);
    ENSURE(pthread_create(&worker->thread, NULL, work, worker) == 0);
    sem_wait(&worker->started);
}

static void finish(struct worker *worker)
{
    sem_post(&worker->go);
    pthread_join(worker->thread, NULL);
}

static void name_threads(void)
{
    char overlong[700] = "";
    for (int i = 0; i < 300; i++)
        strcat(overlong, "\u00e9");
    struct worker by_another = { .name = NULL }, by_itself = { .name = overlong },
                  nameless = { .name = NULL };
    start(&by_another);
    start(&by_itself);
    start(&nameless);
    nvtx.NameOsThreadW(by_another.tid, L"w\u00f6rker");
    nvtx.NameOsThreadA(nameless.tid, NULL);
    nvtx.NameOsThreadA(nameless.tid, "taken back");
    nvtx.NameOsThreadA(nameless.tid, "");
    finish(&by_another);
    finish(&by_itself);
    finish(&nameless);
    printf("threads %u %u %u %u\n", own_tid(), by_another.tid, by_itself.tid, nameless.tid);
}

static void launch(CUfunction kernel, CUstream stream)
{
    OK(cu.LaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

static void name_objects(void)
{
    CUmodule module;
    CUfunction kernel;
    CUstream stream, again, other;
    CUevent event;
    CUcontext context;
    OK(cu.ModuleLoadData(&module, "image"));
    OK(cu.ModuleGetFunction(&kernel, module, "kernel"));
    OK(cu.StreamCreate(&stream, 0));
    OK(cu.StreamCreate(&other, 0));
    OK(cu.EventCreate(&event, 0));
    OK(cu.CtxGetCurrent(&context));
    launch(kernel, stream);
    nvtx_cuda.NameStreamA(stream, "first");
    launch(kernel, stream);
    nvtx_cudart.NameStreamW(stream, L"s\u00e9cond");
    launch(kernel, stream);
    const struct nvtx_resource resource = { .version = 3,
                                            .size = sizeof(resource),
                                            .type = 4 << 16 | 3,
                                            .identifier = (uintptr_t)other,
                                            .message_type = 3,
                                            .message = nvtx_domain.RegisterStringA(NULL, "by resource") };
    ENSURE(nvtx_domain.ResourceCreate(NULL, &resource));
    const struct nvtx_resource unknown = { .version = 3, .size = sizeof(unknown), .type = 6 << 16 | 1 };
    ENSURE(nvtx_domain.ResourceCreate(NULL, &unknown) && nvtx_domain.ResourceCreate(NULL, NULL));
    nvtx_cuda.NameEventA(event, "event");
    nvtx_cudart.NameEventA(event, "event, again");
    nvtx_cuda.NameContextW(context, L"context");
    nvtx_cuda.NameDeviceA(0, "device");
    nvtx_cudart.NameDeviceA(0, "device 0");
    launch(kernel, NULL);
    nvtx_cudart.NameStreamA(NULL, "default");
    launch(kernel, NULL);
    obey_test();
    launch(kernel, other);
    OK(cu.StreamDestroy(stream));
    OK(cu.StreamCreate(&again, 0));
    launch(kernel, again);
    printf("stream %llu %llu %llu\n", (unsigned long long)(uintptr_t)stream,
           (unsigned long long)(uintptr_t)other, (unsigned long long)(uintptr_t)again);
    OK(cu.EventDestroy(event));
}

/* Gives more names than the hook keeps, and then destroys all named objects. */
static long long many;
static void name_many(void)
{
    CUevent *events = calloc((size_t)many, sizeof *events);
    char name[32];
    ENSURE(events);
    for (long long i = 0; i < many; i++) {
        OK(cu.EventCreate(&events[i], 0));
        snprintf(name, sizeof name, "event %lld", i);
        nvtx_cuda.NameEventA(events[i], name);
    }
    for (long long i = 0; i < many; i++)
        OK(cu.EventDestroy(events[i]));
    free(events);
}

int main(int argc, char **argv)
{
    static const struct option_row options[] = {
        TEXT_OPTION("told", "FIFO", "written to when a call was made, of an object that is named", &told),
        TEXT_OPTION("released", "FIFO", "where each byte is to make it do so, until its end", &released),
        NUMBER_OPTION("many", "so many events that are named, and nothing else", &many, 0, 1 << 20),
        { .name = NULL },
    };
    options_read(argc, argv, "Name threads and objects of the driver through NVTX.", options);
    load_tool();
    nvtx.NameOsThreadA(own_tid(), "main thread"); /* before any call */
    driver_open(VIA_LINKED);
    driver_start();
    if (many) {
        name_many();
        return 0;
    }
    if (!told)
        name_threads();
    name_objects();
    return 0;
}
