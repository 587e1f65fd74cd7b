/* gpu_work.c: launches kernels, copies and sets on two streams, for tests that record GPU work. The program
 * ends as requested, and can use CUPTI itself. */
#include "workload.h"

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simcupti.h"

enum end { END_RETURN, END_AT_ONCE, END_WAIT, END_FORK, END_OWN, END_COMMANDS, END_THREAD, END_CALL };
static const char *const end_words[] = { "return",   "at-once", "wait", "fork", "own",
                                         "commands", "thread",  "call", NULL };
static long long rounds = 5, end = END_RETURN;

static const struct option_row options[] = {
    NUMBER_OPTION("rounds", "rounds of three kernels, three copies and a set", &rounds, 0, 1 << 20),
    WORD_OPTION(
        "end", "HOW",
        "return; at-once (_exit); wait for the end of the input; fork a child that calls exit; own: after "
        "a line of input, use CUPTI; commands: read lines (work BYTES, launch N, set N, graph N, loop N, "
        "allocate N, rest, block, free, context, access, call, fork, vfork, confine, permit, reject, "
        "subscribe, unsubscribe), answer each, and return at the end of the input; thread: the first thread "
        "exits, and an exit handler makes a call; call: the system call exit() with status 3",
        &end, end_words),
    { .name = NULL },
};

static CUfunction kernels[3];
static CUdeviceptr memory[2];
static CUstream streams[2];

static void prepare(void)
{
    static const char *const names[] = { "alpha", "_Z4betaPfi", "_ZN5gamma5deltaIfEEvv" };
    CUmodule module;
    driver_start();
    OK(cu.ModuleLoadData(&module, "image"));
    for (int i = 0; i < 3; i++)
        OK(cu.ModuleGetFunction(&kernels[i], module, names[i]));
    for (int i = 0; i < 2; i++) {
        OK(cu.MemAlloc(&memory[i], 4096));
        OK(cu.StreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    }
}

static void work(size_t set_bytes)
{
    static uint8_t host[4096];
    for (long long i = 0; i < rounds; i++) {
        for (int j = 0; j < 3; j++)
            OK(cu.LaunchKernel(kernels[j], 1, 1, 1, 32, 1, 1, 0, streams[j % 2], NULL, NULL));
        OK(cu.MemcpyHtoDAsync(memory[0], host, 1024, streams[0]));
        OK(cu.MemcpyDtoD(memory[1], memory[0], 2048));
        OK(cu.MemcpyDtoH(host, memory[1], 4096));
        OK(cu.MemsetD8Async(memory[0], 1, set_bytes, streams[1]));
    }
    OK(cu.CtxSynchronize());
}

static void fork_child(void)
{
    int status;
    fflush(stdout);
    const pid_t child = fork();
    ENSURE(child >= 0);
    if (child == 0)
        exit(3);
    ENSURE(waitpid(child, &status, 0) == child);
    ENSURE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

/* The child of vfork() makes a call, although the real driver does not allow this. */
static void vfork_child(void)
{
    int status;
    const pid_t child = vfork();
    if (child == 0) {
        cu.CtxSynchronize();
        _exit(3);
    }
    ENSURE(child > 0 && waitpid(child, &status, 0) == child);
    ENSURE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

static void make_call(void)
{
    OK(cu.CtxSynchronize());
}

static void ignore(void *data, int32_t domain, uint32_t id, const struct simcupti_call *call)
{
    (void)data;
    (void)domain;
    (void)id;
    (void)call;
}

static __typeof__(&cuptiSubscribe) subscribe;
static __typeof__(&cuptiUnsubscribe) unsubscribe;
static void *subscriber;

static void open_cupti(void)
{
    void *library = dlopen("libcupti.so.13", RTLD_NOW);
    ENSURE(library != NULL);
    subscribe = (__typeof__(subscribe))dlsym(library, "cuptiSubscribe");
    unsubscribe = (__typeof__(unsubscribe))dlsym(library, "cuptiUnsubscribe");
    ENSURE(subscribe && unsubscribe);
}

/* Tries to subscribe once. After a line of input, retries until no other tool is subscribed, then does its
 * work and unsubscribes. */
static void use_cupti(void)
{
    int32_t result;
    open_cupti();
    printf("first %d\n", subscribe(&subscriber, ignore, NULL));
    fflush(stdout);
    while (getchar() != '\n')
        ;
    while ((result = subscribe(&subscriber, ignore, NULL)) == SIMCUPTI_MULTIPLE_SUBSCRIBERS)
        sched_yield();
    ENSURE(result == SIMCUPTI_SUCCESS);
    work(512);
    ENSURE(unsubscribe(subscriber) == SIMCUPTI_SUCCESS);
}

/* Makes a graph of three kernels. */
static CUgraphExec make_graph(CUstream stream)
{
    CUgraph graph;
    CUgraphExec exec;
    OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (int i = 0; i < 3; i++)
        OK(cu.LaunchKernel(kernels[i], 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
    OK(cu.StreamEndCapture(stream, &graph));
    OK(cu.GraphInstantiate(&exec, graph, NULL, NULL, 0));
    return exec;
}

static void launch_graph(size_t launches)
{
    static CUgraphExec exec;
    if (!exec)
        exec = make_graph(streams[0]);
    for (size_t i = 0; i < launches; i++)
        OK(cu.GraphLaunch(exec, streams[0]));
    OK(cu.CtxSynchronize());
}

/* ---- threads that make calls all the time ---- */

enum { THREADS = 8 };
static struct looper {
    pthread_t thread;
    size_t kind; /* each thread makes calls of one kind, so that none waits because of another */
    CUstream stream;
    CUgraphExec exec;
} loopers[THREADS];
static size_t looping;
static _Atomic bool must_rest;
static CUcontext context;

static void allocate(void)
{
    CUdeviceptr block;
    OK(cu.MemAlloc(&block, 256));
    OK(cu.MemFree(block));
}

static void *loop(void *data)
{
    const struct looper *self = data;
    OK(cu.CtxSetCurrent(context));
    while (!atomic_load(&must_rest)) {
        if (self->kind == 0)
            OK(cu.LaunchKernel(kernels[0], 1, 1, 1, 32, 1, 1, 0, self->stream, NULL, NULL));
        else if (self->kind == 1)
            OK(cu.GraphLaunch(self->exec, self->stream));
        else if (self->kind == 2)
            OK(cu.MemsetD8Async(memory[0], 1, 256, self->stream));
        else
            allocate();
        OK(cu.StreamSynchronize(self->stream));
    }
    return NULL;
}

static void start_loops(size_t count, bool allocates)
{
    ENSURE(count <= THREADS && looping == 0);
    OK(cu.CtxGetCurrent(&context));
    atomic_store(&must_rest, false);
    for (size_t i = 0; i < count; i++) {
        OK(cu.StreamCreate(&loopers[i].stream, CU_STREAM_NON_BLOCKING));
        loopers[i].exec = make_graph(loopers[i].stream);
        loopers[i].kind = allocates ? 3 : i % 3;
    }
    for (; looping < count; looping++)
        ENSURE(pthread_create(&loopers[looping].thread, NULL, loop, &loopers[looping]) == 0);
}

static void end_loops(void)
{
    atomic_store(&must_rest, true);
    while (looping > 0)
        ENSURE(pthread_join(loopers[--looping].thread, NULL) == 0);
}

/* ---- work that waits for the program ---- */

CUresult cuLaunchHostFunc(CUstream stream, void (*function)(void *), void *data);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, int device);
CUresult cuCtxPopCurrent_v2(CUcontext *context);
static sem_t is_free;

static void wait_for_free(void *unused)
{
    (void)unused;
    ENSURE(sem_wait(&is_free) == 0);
}

static void block(void)
{
    OK(cuLaunchHostFunc(streams[0], wait_for_free, NULL));
    OK(cu.LaunchKernel(kernels[0], 1, 1, 1, 32, 1, 1, 0, streams[0], NULL, NULL));
}

static int install_for_all_threads(struct sock_filter *filter, size_t count)
{
    const struct sock_fprog program = { (unsigned short)count, filter };
    ENSURE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

/* Forbids all threads to open files and to sleep. */
static void confine(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_nanosleep, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_nanosleep, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    ENSURE(install_for_all_threads(filter, sizeof(filter) / sizeof(filter[0])) == 0);
}

/* Installs a filter that permits everything. The kernel rejects the filter if `is_empty` is set. */
static int permit(bool is_empty)
{
    struct sock_filter filter[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
    return install_for_all_threads(filter, is_empty ? 0 : 1);
}

static void run_command(const char *line)
{
    size_t bytes;
    int32_t result = 0;
    if (sscanf(line, "work %zu", &bytes) == 1 && bytes <= 4096) {
        work(bytes);
    } else if (sscanf(line, "launch %zu", &bytes) == 1) {
        for (size_t i = 0; i < bytes; i++)
            OK(cu.LaunchKernel(kernels[0], 1, 1, 1, 32, 1, 1, 0, streams[0], NULL, NULL));
    } else if (sscanf(line, "set %zu", &bytes) == 1) {
        for (size_t i = 0; i < bytes; i++)
            OK(cu.MemsetD8Async(memory[0], 1, 256, streams[1]));
    } else if (sscanf(line, "graph %zu", &bytes) == 1) {
        launch_graph(bytes);
    } else if (sscanf(line, "loop %zu", &bytes) == 1) {
        start_loops(bytes, false);
    } else if (sscanf(line, "allocate %zu", &bytes) == 1) {
        start_loops(bytes, true);
    } else if (strcmp(line, "rest\n") == 0) {
        end_loops();
    } else if (strcmp(line, "block\n") == 0) {
        block();
    } else if (strcmp(line, "free\n") == 0) {
        ENSURE(sem_post(&is_free) == 0);
    } else if (strcmp(line, "context\n") == 0) {
        CUcontext other;
        OK(cuCtxCreate_v2(&other, 0, 0));
        OK(cuCtxPopCurrent_v2(&other));
    } else if (strcmp(line, "access\n") == 0) {
        __typeof__(int(CUdeviceptr, size_t, const void *, size_t)) *const set_access =
            (__typeof__(set_access))dlsym(RTLD_DEFAULT, "cuMemSetAccess");
        ENSURE(set_access != NULL);
        result = set_access(memory[0], 4096, NULL, 0);
    } else if (strcmp(line, "call\n") == 0) {
        make_call();
    } else if (strcmp(line, "fork\n") == 0) {
        fork_child();
    } else if (strcmp(line, "vfork\n") == 0) {
        vfork_child();
    } else if (strcmp(line, "confine\n") == 0) {
        confine();
    } else if (strcmp(line, "permit\n") == 0) {
        result = permit(false);
    } else if (strcmp(line, "reject\n") == 0) {
        result = permit(true);
    } else if (strcmp(line, "subscribe\n") == 0) {
        open_cupti();
        result = subscribe(&subscriber, ignore, NULL);
    } else {
        ENSURE(strcmp(line, "unsubscribe\n") == 0);
        result = unsubscribe(subscriber);
    }
    printf("%d\n", result);
    fflush(stdout);
}

static void run_commands(void)
{
    char line[64];
    while (fgets(line, sizeof(line), stdin))
        run_command(line);
}

int main(int argc, char **argv)
{
    options_read(argc, argv, "Make work for the GPU, for a recording of the GPU's work.", options);
    driver_open(VIA_LINKED);
    prepare();
    work(512);
    printf("gpu_work: rounds=%lld ok\n", rounds);
    fflush(stdout);
    switch ((enum end)end) {
    case END_AT_ONCE:
        _exit(0);
    case END_WAIT:
        while (getchar() != EOF)
            ;
        break;
    case END_FORK:
        fork_child();
        break;
    case END_OWN:
        use_cupti();
        break;
    case END_COMMANDS:
        run_commands();
        break;
    case END_THREAD:
        ENSURE(atexit(make_call) == 0);
        pthread_exit(NULL);
    case END_CALL:
        syscall(SYS_exit, 3);
    case END_RETURN:
        break;
    }
    return 0;
}
