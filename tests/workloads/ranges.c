/* ranges.c: marks ranges through NVTX, and makes driver calls inside them. The program checks the results of
 * NVTX's functions. The tests that run this program check the recorded ranges. */
#include "nvtx_client.h"
#include "workload.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ASCII = 1, UNICODE = 2, REGISTERED = 3, ARGB = 1, NO_TRACKING = -2 };
enum { U64 = 1, I64, DOUBLE, U32, I32, FLOAT };

/* Loads the tool named by NVTX_INJECTION64_PATH. Returns false if there is no tool. */
static bool load_tool(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    if (!library)
        return false;
    ENSURE(nvtx_load(library));
    ENSURE(nvtx_injection_version == 3);
    return true;
}

static struct nvtx_attributes say(const char *message)
{
    return (struct nvtx_attributes){
        .version = 3, .size = sizeof(struct nvtx_attributes), .message_type = ASCII, .message.ascii = message
    };
}

static void call_driver(void)
{
    CUcontext current;
    OK(cu.CtxGetCurrent(&current));
}

static long long count = 1000;

static void nest(void)
{
    char gone[] = "forward";
    EXPECT(0, nvtx.RangePushA(gone));
    memset(gone, 'x', sizeof gone - 1); /* the message must have been copied when the range began */
    call_driver();
    EXPECT(1, nvtx.RangePushA("layer"));
    call_driver();
    nvtx.MarkA("here");
    EXPECT(1, nvtx.RangePop());
    call_driver();
    EXPECT(0, nvtx.RangePop());
    nvtx.MarkA("outside");
    EXPECT(NO_TRACKING, nvtx.RangePop());
    EXPECT(0, nvtx.RangePushW(L"gr\u00fc\u00df \u4e16 \U0001f680"));
    EXPECT(0, nvtx.RangePop());
    nvtx.MarkW(L"wide");
    nvtx.MarkA("latin \xfc and \xff");
    nvtx.MarkA("");
    nvtx.MarkA(NULL);
    char *page = malloc(6000);
    ENSURE(page);
    memset(page, 'p', 4094);
    strcpy(page + 4094, "\xc3\xbc and what is cut off");
    nvtx.MarkA(page);
    EXPECT(0, nvtx.RangePushA(page));
    EXPECT(0, nvtx.RangePop());
    nvtx.RangeEnd(nvtx.RangeStartA(page));
    free(page);
}

/* Makes marks with every kind of message and payload. */
static void mark(void *wide, struct nvtx_attributes a, struct nvtx_attributes r, void *wide_message)
{
    struct nvtx_attributes w = say(NULL);
    w.message_type = UNICODE;
    w.message.unicode = L"\u03b1";
    w.category = 7;
    w.color = 0xffffffff; /* this has no effect without a color type */
    w.payload_type = U64;
    w.payload.u64 = UINT64_MAX;
    nvtx_domain.MarkEx(wide, &w);
    r.message.registered = wide_message;
    r.payload_type = FLOAT;
    r.payload.f = 1.5f;
    nvtx_domain.MarkEx(wide, &r);
    a.payload_type = U32;
    a.payload.u64 = 0xffffffff80000000;
    nvtx.MarkEx(&a);
    a.payload_type = I32;
    nvtx.MarkEx(&a);
    a.payload_type = DOUBLE;
    a.payload.d = -1.0 / 0.0;
    a.category = 8;
    nvtx.MarkEx(&a);
    a.payload_type = 0x7fffffff; /* a type of an extension */
    r.message.registered = (void *)(uintptr_t)0xdeadbeef;
    nvtx.MarkEx(&r);
    a.size = 8;
    nvtx.MarkEx(&a);
    nvtx.MarkEx(NULL);
}

static void domains(void)
{
    void *library = nvtx_domain.CreateA("library");
    void *wide = nvtx_domain.CreateW(L"d\u00f6main");
    ENSURE(library && wide && library != wide);
    ENSURE(nvtx_domain.CreateA("library") == library);
    nvtx_domain.Initialize(NULL);
    void *message = nvtx_domain.RegisterStringA(library, "registered");
    void *wide_message = nvtx_domain.RegisterStringW(wide, L"w\u00efde");
    ENSURE(message && wide_message && nvtx_domain.RegisterStringA(library, "registered") == message);
    nvtx_domain.NameCategoryA(library, 7, "io");
    nvtx_domain.NameCategoryW(wide, 7, L"\u00e9tude");
    nvtx.NameCategoryA(7, "default seven");
    nvtx.NameCategoryW(8, L"eight");

    struct nvtx_attributes a = say("full");
    a.category = 7;
    a.color_type = ARGB;
    a.color = 0xff102030;
    a.payload_type = I64;
    a.payload.i64 = -5;
    struct nvtx_attributes r = a;
    r.message_type = REGISTERED;
    r.message.registered = message;
    r.category = 9; /* without a name */
    r.payload_type = DOUBLE;
    r.payload.d = 0.1;

    /* Each domain has separate levels, and ranges of different domains may overlap. */
    EXPECT(0, nvtx.RangePushEx(&a));
    EXPECT(0, nvtx_domain.RangePushEx(library, &r));
    EXPECT(1, nvtx.RangePushA("inner"));
    call_driver();
    EXPECT(0, nvtx_domain.RangePop(library));
    EXPECT(NO_TRACKING, nvtx_domain.RangePop(library));
    call_driver();
    EXPECT(1, nvtx.RangePop());
    EXPECT(0, nvtx.RangePop());
    call_driver();

    mark(wide, a, r, wide_message);
    ENSURE(nvtx_domain.ResourceCreate(library, NULL));
    nvtx_domain.ResourceDestroy(nvtx_domain.ResourceCreate(library, NULL));
    nvtx_domain.Destroy(library);
    nvtx_domain.Destroy(wide);
}

/* Runs a training loop that gives names to its steps. */
static void train(void)
{
    static const char *const phases[] = { "forward", "backward", "optimizer" };
    char message[32];
    CUmodule module;
    CUfunction fill;
    CUstream stream;
    CUdeviceptr at;
    OK(cu.ModuleLoadData(&module, "image"));
    OK(cu.ModuleGetFunction(&fill, module, "fill_u32"));
    OK(cu.MemAlloc(&at, 4096));
    OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int step = 0; step < count; step++) {
        snprintf(message, sizeof message, "step %d", step);
        EXPECT(0, nvtx.RangePushA(message));
        for (int phase = 0; phase < 3; phase++) {
            EXPECT(1, nvtx.RangePushA(phases[phase]));
            for (uint32_t i = 0; i < 3 - (uint32_t)phase; i++)
                OK(launch_fill(fill, at, i, 1024, stream));
            EXPECT(1, nvtx.RangePop());
        }
        OK(cu.StreamSynchronize(stream));
        EXPECT(0, nvtx.RangePop());
    }
    OK(cu.MemFree(at));
}

static uint64_t handed_over;

static void *end_there(void *unused)
{
    nvtx.RangePushA("ending");
    nvtx.RangeEnd(handed_over);
    nvtx.RangePop();
    return unused;
}

static void processes(void)
{
    pthread_t thread;
    void *library = nvtx_domain.CreateA("library");
    struct nvtx_attributes a = say("b");
    const uint64_t first = nvtx.RangeStartA("a"), second = nvtx_domain.RangeStartEx(library, &a),
                   third = nvtx.RangeStartW(L"c");
    ENSURE(first && second && third && first != second && second != third && first != third);
    nvtx.RangeEnd(first); /* overlaps the second */
    nvtx_domain.RangeEnd(library, second);
    nvtx.RangeEnd(second); /* has ended */
    nvtx.RangeEnd(12345678);
    nvtx.RangeEnd(0);
    handed_over = third;
    ENSURE(pthread_create(&thread, NULL, end_there, NULL) == 0);
    pthread_join(thread, NULL);
    ENSURE(nvtx.RangeStartA("never ended") != third);
}

/* Makes threads end ranges that other threads have started. Each thread stores its new range in a slot
 * of a shared array, and ends the range that the slot contained before. */
static void *exchange(void *places)
{
    enum { PLACES = 4 };
    for (long long i = 0; i < count; i++) {
        const uint64_t id = nvtx.RangeStartA("exchanged");
        ENSURE(id);
        nvtx.RangeEnd(__atomic_exchange_n((uint64_t *)places + i % PLACES, id, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static void race(void)
{
    enum { THREADS = 8 };
    static uint64_t places[4];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        ENSURE(pthread_create(&thread[i], NULL, exchange, places) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 4; i++)
        nvtx.RangeEnd(places[i]);
}

static void deep(void)
{
    char message[32];
    for (int i = 0; i < count; i++) {
        snprintf(message, sizeof message, "level %d", i);
        EXPECT(i, nvtx.RangePushA(message));
    }
    call_driver();
    for (int i = (int)count - 1; i >= 0; i--)
        EXPECT(i, nvtx.RangePop());
    call_driver();
    EXPECT(NO_TRACKING, nvtx.RangePop());
}

/* Returns the size of this process's memory in bytes: either all mapped memory, or resident memory that is
 * not shared. */
static long long memory_bytes(bool mapped)
{
    long long total, resident, shared_pages;
    FILE *statm = fopen("/proc/self/statm", "r");
    ENSURE(statm && fscanf(statm, "%lld %lld %lld", &total, &resident, &shared_pages) == 3);
    fclose(statm);
    return (mapped ? total : resident - shared_pages) * sysconf(_SC_PAGESIZE);
}

/* Lets the test read the records made so far, so that none are lost. Sends a byte to the test and receives
 * one. */
static void pace(void)
{
    char byte;
    ENSURE(write(STDOUT_FILENO, "\n", 1) == 1 && read(STDIN_FILENO, &byte, 1) == 1);
}

/* Makes ranges whose messages are all different. Prints how much the process has grown since it made the
 * first tenth of the ranges. */
static void distinct(void)
{
    enum { STRIDE = 5000 };
    char message[64];
    long long before = 0;
    for (long long i = 0; i < count; i++) {
        snprintf(message, sizeof message, "step %lld", i);
        EXPECT(0, nvtx.RangePushA(message));
        EXPECT(0, nvtx.RangePop());
        if (i % 4 == 0)
            nvtx.RangeEnd(nvtx.RangeStartA(message));
        if (i == count / 10)
            before = memory_bytes(false);
        if (i % STRIDE == STRIDE - 1)
            pace();
    }
    printf("ranges: grown=%lld\n", memory_bytes(false) - before);
}

/* Makes more names, domains and open ranges than the hook keeps. */
static void limits(void)
{
    char message[64];
    uint64_t last = 0;
    for (int i = 0; i < 2000; i++) {
        snprintf(message, sizeof message, "domain %d", i);
        void *handle = nvtx_domain.CreateA(message);
        struct nvtx_attributes a = say(message);
        ENSURE(handle);
        EXPECT(0, nvtx_domain.RangePushEx(handle, &a));
        EXPECT(0, nvtx_domain.RangePop(handle));
        nvtx_domain.NameCategoryA(handle, (uint32_t)i, message);
    }
    for (int i = 0; i < 70000; i++) {
        snprintf(message, sizeof message, "string %d", i);
        struct nvtx_attributes a = { .version = 3,
                                     .size = sizeof a,
                                     .message_type = REGISTERED,
                                     .message.registered = nvtx_domain.RegisterStringA(NULL, message) };
        ENSURE(a.message.registered);
        if (i % 1000 == 999)
            nvtx.MarkEx(&a);
    }
    for (int i = 0; i < 70000; i++)
        ENSURE((last = nvtx.RangeStartA("left open")) != 0);
    nvtx.RangeEnd(last);
}

static void *leave_open(void *unused)
{
    call_driver();
    EXPECT(0, nvtx.RangePushA("left by its thread"));
    EXPECT(1, nvtx.RangePushA("this too"));
    return unused;
}

static void *only_ranges(void *unused)
{
    EXPECT(0, nvtx.RangePushA("first act"));
    EXPECT(0, nvtx.RangePop());
    return unused;
}

static void threads(void)
{
    long long before = 0;
    for (long long i = 0; i < count; i++) {
        pthread_t thread;
        if (i == count / 2)
            before = memory_bytes(true);
        ENSURE(pthread_create(&thread, NULL, i % 2 ? only_ranges : leave_open, NULL) == 0);
        pthread_join(thread, NULL);
    }
    printf("ranges: mapped=%lld\n", memory_bytes(true) - before);
}

/* Waits inside a driver call, which SIMCUDA_BLOCK=cuCtxSynchronize makes block. */
static void hang(void)
{
    nvtx.RangePushA("outer");
    nvtx.RangePushA("inner");
    OK(cu.CtxSynchronize());
    nvtx.RangePop();
    nvtx.RangePop();
}

/* Runs during the blocked call, as a host callback would. Ends the range around the call, and leaves open a
 * range that is inside the call. */
static void in_handler(int number)
{
    (void)number;
    EXPECT(0, nvtx.RangePop());
    EXPECT(0, nvtx.RangePushA("outlives the call"));
    ENSURE(write(STDOUT_FILENO, "handled\n", 8) == 8);
}

static void cross(void)
{
    sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = in_handler, .sa_flags = SA_RESTART }, NULL);
    call_driver();
    EXPECT(0, nvtx.RangePushA("ends inside the call"));
    OK(cu.CtxSynchronize());
    call_driver();
    /* Ranges in another domain reuse the levels of the call and of the range inside it. */
    void *library = nvtx_domain.CreateA("library");
    const struct nvtx_attributes a = say("after");
    for (int i = 0; i < 3; i++)
        EXPECT(i, nvtx_domain.RangePushEx(library, &a));
    EXPECT(0, nvtx.RangePop());
    call_driver();
    for (int i = 2; i >= 0; i--)
        EXPECT(i, nvtx_domain.RangePop(library));
    call_driver();
}

static sigjmp_buf before_call;

static void jump(int number)
{
    siglongjmp(before_call, number);
}

/* Leaves the blocked call with siglongjmp(). The call is then no longer considered open. */
static void leave_by_jump(void)
{
    sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = jump, .sa_flags = SA_RESTART }, NULL);
    EXPECT(0, nvtx.RangePushA("around"));
    if (sigsetjmp(before_call, 1) == 0)
        OK(cu.CtxSynchronize());
    EXPECT(1, nvtx.RangePushA("behind"));
    call_driver();
    EXPECT(1, nvtx.RangePop());
    EXPECT(0, nvtx.RangePop());
    nvtx.MarkA("outside");
}

/* A child inherits the levels of the ranges, but the ranges belong to its parent. */
static void forks(void)
{
    int status;
    EXPECT(0, nvtx.RangePushA("parent's"));
    const uint64_t started = nvtx.RangeStartA("parent's too");
    const pid_t child = fork();
    if (child == 0) {
        EXPECT(1, nvtx.RangePushA("child's"));
        EXPECT(1, nvtx.RangePop());
        EXPECT(0, nvtx.RangePop());
        nvtx.RangeEnd(started);
        _exit(0);
    }
    ENSURE(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    nvtx.RangeEnd(started);
    EXPECT(0, nvtx.RangePop());
}

static const char *released, *told;

/* Waits for `released` while a range is open, so that the test can start or stop daemons. */
static void wait_inside(void)
{
    char byte;
    EXPECT(0, nvtx.RangePushA("around"));
    const uint64_t started = nvtx.RangeStartA("started before");
    call_driver();
    const int tell = open(told, O_WRONLY);
    ENSURE(tell >= 0 && write(tell, "\n", 1) == 1);
    close(tell);
    const int go = open(released, O_RDONLY);
    ENSURE(go >= 0 && read(go, &byte, 1) >= 0);
    close(go);
    /* A process without a daemon looks for one once a second, and records no calls until it has found one. */
    for (long long i = 0; i < count; i++) {
        EXPECT(1, nvtx.RangePushA("inside"));
        EXPECT(1, nvtx.RangePop());
    }
    nvtx.RangeEnd(started);
    EXPECT(0, nvtx.RangePop());
    EXPECT(0, nvtx.RangePushA("behind"));
    EXPECT(0, nvtx.RangePop());
}

static void push_in(void *library, const char *message)
{
    const struct nvtx_attributes a = say(message);
    ENSURE(nvtx_domain.RangePushEx(library, &a) >= 0);
}

static void *synchronize(void *unused)
{
    OK(cu.CtxSynchronize());
    return unused;
}

/* Behaves like a rank of NCCL, whose library has ranges before, around and inside the program's ranges.
 * Unless `released` is given, the program exits while the library has two ranges open and a thread is inside
 * a call. */
static void rank(void)
{
    char message[32], byte;
    pthread_t thread;
    void *const nccl = nvtx_domain.CreateA("NCCL"), *const mine = nvtx_domain.CreateA("mine");
    push_in(nccl, "ncclCommInitRank");
    call_driver();
    nvtx_domain.RangePop(nccl);
    for (int step = 0; step < count; step++) {
        if (step == 0) {
            push_in(mine, "setup");
            call_driver();
            nvtx_domain.RangePop(mine);
        }
        push_in(nccl, "ncclGroup");
        snprintf(message, sizeof message, "step %d", step);
        nvtx.RangePushA(message);
        push_in(nccl, "ncclAllReduce");
        call_driver();
        nvtx_domain.RangePop(nccl);
        nvtx.RangePop();
        nvtx_domain.RangePop(nccl);
    }
    push_in(nccl, "ncclGroup");
    push_in(nccl, "ncclAllReduce");
    ENSURE(pthread_create(&thread, NULL, synchronize, NULL) == 0);
    const int go = released ? open(released, O_RDONLY) : -1;
    ENSURE(!released || (go >= 0 && read(go, &byte, 1) >= 0));
}

/* ---- main ---- */

static const char *const names[] = { "nest",     "domains", "train",   "processes", "race",  "deep",
                                     "distinct", "limits",  "threads", "hang",      "cross", "jump",
                                     "forks",    "wait",    "rank",    NULL };
static void (*const acts[])(void) = { nest,  domains,       train,  processes,   race,
                                      deep,  distinct,      limits, threads,     hang,
                                      cross, leave_by_jump, forks,  wait_inside, rank };

int main(int argc, char **argv)
{
    static long long act, optional;
    static const struct option_row options[] = {
        WORD_OPTION(
            "do", "WHAT",
            "nest, domains, train, processes, race, deep, distinct, limits, threads, hang, cross, jump, "
            "forks, wait or rank",
            &act, names),
        NUMBER_OPTION("count", "of ranges, steps or threads", &count, 0, 1ll << 40),
        NUMBER_OPTION("optional", "1: do nothing when there is no tool", &optional, 0, 1),
        TEXT_OPTION("told", "FIFO", "written to by wait when it waits", &told),
        TEXT_OPTION("released", "FIFO", "what wait waits for", &released),
        { .name = NULL },
    };
    options_read(argc, argv, "Push, pop, start, end and mark ranges through NVTX.", options);
    driver_open(VIA_LINKED);
    driver_start();
    if (!load_tool()) {
        printf("ranges: no tool\n");
        return optional ? 0 : 1;
    }
    acts[act]();
    printf("ranges: %s ok\n", names[act]);
    return 0;
}
