/*
 * named.c: names threads and objects of the driver through NVTX, and makes calls with them.
 *
 * A client of NVTX without its header: the tables and the order of loading are those of NVTX 3 (nvToolsExt.h,
 * nvToolsExtCuda.h, nvToolsExtCudaRt.h, nvtxDetail/nvtxInit.h and nvtxTypes.h; Apache-2.0 with LLVM
 * exception).
 */
#include "workload.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

/* ---- the client ---- */

typedef void function(void);
typedef void by_number_a(uint32_t, const char *);
typedef void by_number_w(uint32_t, const wchar_t *);
typedef void by_handle_a(void *, const char *);
typedef void by_handle_w(void *, const wchar_t *);

static struct {
    function *none, *events[13];
    by_number_a *NameOsThreadA;
    by_number_w *NameOsThreadW;
} core;
static struct {
    function *none;
    by_number_a *NameDeviceA;
    by_number_w *NameDeviceW;
    by_handle_a *NameContextA;
    by_handle_w *NameContextW;
    by_handle_a *NameStreamA;
    by_handle_w *NameStreamW;
    by_handle_a *NameEventA;
    by_handle_w *NameEventW;
} cuda;
static struct {
    function *none;
    by_number_a *NameDeviceA;
    by_number_w *NameDeviceW;
    by_handle_a *NameStreamA;
    by_handle_w *NameStreamW;
    by_handle_a *NameEventA;
    by_handle_w *NameEventW;
} cudart;

struct resource {
    uint16_t version, size;
    int32_t type;
    uint64_t identifier;
    int32_t message_type;
    const void *message;
};
static struct {
    function *none, *ranges[5];
    void *(*ResourceCreate)(void *, const struct resource *);
    void (*ResourceDestroy)(void *);
    function *categories[2];
    void *(*RegisterStringA)(void *, const char *);
    function *rest[5];
} core2;

enum { MODULES = 4, TABLE_MAX = 20 };
static const struct {
    uint32_t module;
    function **functions;
    unsigned entries;
} modules[MODULES] = { { 1, (function **)&core, sizeof(core) / sizeof(function *) },
                       { 2, (function **)&cuda, sizeof(cuda) / sizeof(function *) },
                       { 4, (function **)&cudart, sizeof(cudart) / sizeof(function *) },
                       { 5, (function **)&core2, sizeof(core2) / sizeof(function *) } };

static int get_module(uint32_t module, function ****table, unsigned *entries)
{
    static function **tables[MODULES][TABLE_MAX];
    for (int m = 0; m < MODULES; m++) {
        if (modules[m].module != module)
            continue;
        for (unsigned i = 1; i < modules[m].entries; i++)
            tables[m][i] = modules[m].functions + i;
        *table = tables[m];
        *entries = modules[m].entries;
        return 1;
    }
    return 0;
}

static const void *get_table(uint32_t table)
{
    static const struct {
        size_t bytes;
        int (*get_module)(uint32_t, function ****, unsigned *);
    } callbacks = { sizeof(callbacks), get_module };
    return table == 1 ? &callbacks : NULL;
}

static void load_tool(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    ENSURE(library);
    int (*initialize)(const void *(*)(uint32_t)) =
        (int (*)(const void *(*)(uint32_t)))(uintptr_t)dlsym(library, "InitializeInjectionNvtx2");
    ENSURE(initialize && initialize(get_table) == 1);
}

/* ---- what it does ---- */

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

/* Makes calls until the test, which starts or stops daemons meanwhile, says that it may go on. */
static void wait_for_test(void)
{
    if (!told)
        return;
    const int tell = open(told, O_WRONLY);
    ENSURE(tell >= 0 && write(tell, "", 1) == 1 && close(tell) == 0);
    char byte;
    const int go = open(released, O_RDONLY | O_NONBLOCK);
    ENSURE(go >= 0);
    while (read(go, &byte, 1) != 1) {
        call_driver();
        usleep(1000); /* no more calls than a ring holds, however late the daemon */
    }
    close(go);
}

struct worker {
    pthread_t thread;
    sem_t started, go;
    uint32_t tid;
    const char *name; /* that it gives itself, after its first call */
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
        core.NameOsThreadA(worker->tid, "not yet");
        core.NameOsThreadA(worker->tid, worker->name);
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
    core.NameOsThreadW(by_another.tid, L"w\u00f6rker");
    core.NameOsThreadA(nameless.tid, NULL);
    core.NameOsThreadA(nameless.tid, "taken back");
    core.NameOsThreadA(nameless.tid, "");
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
    cuda.NameStreamA(stream, "first");
    launch(kernel, stream);
    cudart.NameStreamW(stream, L"s\u00e9cond");
    launch(kernel, stream);
    const struct resource resource = { .version = 3,
                                       .size = sizeof(resource),
                                       .type = 4 << 16 | 3,
                                       .identifier = (uintptr_t)other,
                                       .message_type = 3,
                                       .message = core2.RegisterStringA(NULL, "by resource") };
    ENSURE(core2.ResourceCreate(NULL, &resource));
    const struct resource unknown = { .version = 3, .size = sizeof(unknown), .type = 6 << 16 | 1 };
    ENSURE(core2.ResourceCreate(NULL, &unknown) && core2.ResourceCreate(NULL, NULL));
    cuda.NameEventA(event, "event");
    cudart.NameEventA(event, "event, again");
    cuda.NameContextW(context, L"context");
    cuda.NameDeviceA(0, "device");
    cudart.NameDeviceA(0, "device 0");
    launch(kernel, NULL);
    cudart.NameStreamA(NULL, "default");
    launch(kernel, NULL);
    wait_for_test();
    launch(kernel, other);
    OK(cu.StreamDestroy(stream));
    OK(cu.StreamCreate(&again, 0));
    launch(kernel, again);
    printf("stream %llu %llu %llu\n", (unsigned long long)(uintptr_t)stream,
           (unsigned long long)(uintptr_t)other, (unsigned long long)(uintptr_t)again);
    OK(cu.EventDestroy(event));
}

/* More than are kept, of which each ends. */
static long long many;
static void name_many(void)
{
    CUevent *events = calloc((size_t)many, sizeof *events);
    char name[32];
    ENSURE(events);
    for (long long i = 0; i < many; i++) {
        OK(cu.EventCreate(&events[i], 0));
        snprintf(name, sizeof name, "event %lld", i);
        cuda.NameEventA(events[i], name);
    }
    for (long long i = 0; i < many; i++)
        OK(cu.EventDestroy(events[i]));
    free(events);
}

int main(int argc, char **argv)
{
    static const struct option_row options[] = {
        TEXT_OPTION("told", "FIFO", "written to when all is named", &told),
        TEXT_OPTION("released", "FIFO", "what it waits for then", &released),
        NUMBER_OPTION("many", "so many events that are named, and nothing else", &many, 0, 1 << 20),
        { .name = NULL },
    };
    options_read(argc, argv, "Name threads and objects of the driver through NVTX.", options);
    load_tool();
    core.NameOsThreadA(own_tid(), "main thread"); /* before any call */
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
