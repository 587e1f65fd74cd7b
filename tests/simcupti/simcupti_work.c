/* simcupti_work.c: the simulated CUPTI's activity records, from the driver's work to the client's buffers.
 *
 * Work waits in a list, sorted by end time. A flush turns all work that has ended into records. The client's
 * timestamp callback need not count nanoseconds. Like the real CUPTI, a flush therefore interpolates between
 * readings of both clocks. */
#include "simcupti_work.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PACKED __attribute__((packed, aligned(8)))

/* CUpti_ActivityKernel9 of CUDA 12.8, and CUpti_ActivityKernel10 of CUDA 13.0. */
struct PACKED kernel_record {
    uint32_t kind;
    uint8_t cache, shared;
    uint16_t registers;
    uint32_t requested, executed;
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3], static_shared, dynamic_shared;
    uint32_t local_per_thread, local_total, correlation;
    int64_t grid_number;
    const char *name;
    void *reserved;
    uint64_t queued, submitted;
    uint8_t launch_type, carveout_requested, carveout, padding;
    uint32_t shared_executed;
    uint64_t node;
    uint32_t shared_limit, graph;
    void *window;
    uint32_t channel, channel_type, cluster[3], cluster_policy;
    uint64_t local_total_v2;
    uint32_t cluster_size_max, clusters_max;
#if SIMCUPTI_VERSION >= 13
    uint8_t device_launched, padding3[7];
#endif
};

/* CUpti_ActivityMemcpy5 of CUDA 12.0, and CUpti_ActivityMemcpy6 of CUDA 13.0. */
struct PACKED copy_record {
    uint32_t kind;
    uint8_t copy_kind, from, to, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation, runtime_correlation, padding;
    void *reserved;
    uint64_t node;
    uint32_t graph, channel, channel_type;
#if SIMCUPTI_VERSION >= 13
    uint8_t device_launched, padding2[3];
    uint64_t copies;
#endif
};

/* CUpti_ActivityMemset4 of CUDA 12.0. */
struct PACKED set_record {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint16_t flags, memory;
    uint32_t padding;
    void *reserved;
    uint64_t node;
    uint32_t graph, channel, channel_type;
};

/* CUpti_ActivityGraphTrace of CUDA 11.7, and CUpti_ActivityGraphTrace2 of CUDA 13.0. */
struct PACKED graph_record {
    uint32_t kind, correlation;
    uint64_t start, end;
    uint32_t device, graph, context, stream;
    void *reserved;
#if SIMCUPTI_VERSION >= 13
    uint32_t end_device, end_context;
#endif
};

struct pending {
    struct pending *next;
    struct sim_work work;
    char name[];
};

/* A kernel's name, which is shared by all of its records and never freed. */
struct name {
    struct name *next;
    char text[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pending *first;
static struct pending *newest; /* the piece added last, after which most are added; NULL if it is gone */
static struct name *names;
static bool kinds[SIMCUPTI_KINDS];
static bool had_kinds;
static int64_t last_end_ns; /* of the work that the driver has reported */
static simcupti_request *request;
static simcupti_complete *complete;
static uint64_t (*timestamp)(void);
static int64_t zero_ns;
static uint64_t zero_ticks;
static struct buffer {
    uint8_t *memory;
    size_t bytes, used;
} buffer;
static size_t dropped;
static uint64_t made; /* records, including dropped ones */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

long simcupti_number(const char *variable)
{
    const char *value = getenv(variable);
    char *end;
    const long number = value ? strtol(value, &end, 10) : 0;
    if (value && (*end || number < 1))
        simcupti_invalid(variable, value);
    return number;
}

/* While graphs are recorded as a whole, their nodes are not, unless SIMCUPTI_BOTH is set. */
static bool is_wanted(const struct sim_work *work)
{
    static const int kind[] = {
        [SIM_WORK_KERNEL] = SIMCUPTI_CONCURRENT_KERNEL,
        [SIM_WORK_COPY] = SIMCUPTI_MEMCPY,
        [SIM_WORK_SET] = SIMCUPTI_MEMSET,
        [SIM_WORK_GRAPH] = SIMCUPTI_GRAPH_TRACE,
    };
    const bool is_node = work->graph != 0 && work->kind != SIM_WORK_GRAPH;
    return kinds[kind[work->kind]] &&
           !(is_node && kinds[SIMCUPTI_GRAPH_TRACE] && simcupti_number("SIMCUPTI_BOTH") == 0);
}

void simcupti_add_work(const struct sim_work *work)
{
    const size_t name_bytes = work->name ? strlen(work->name) + 1 : 0;
    pthread_mutex_lock(&lock);
    last_end_ns = work->end_ns > last_end_ns ? work->end_ns : last_end_ns;
    struct pending *added = is_wanted(work) ? malloc(sizeof *added + name_bytes) : NULL;
    if (added) {
        added->work = *work;
        if (name_bytes)
            memcpy(added->name, work->name, name_bytes);
        struct pending **link = newest && newest->work.end_ns <= work->end_ns ? &newest->next : &first;
        while (*link && (*link)->work.end_ns <= work->end_ns)
            link = &(*link)->next;
        added->next = *link;
        *link = added;
        newest = added;
    }
    pthread_mutex_unlock(&lock);
}

static const char *lasting_name(const char *text)
{
    struct name *name = names;
    while (name && strcmp(name->text, text) != 0)
        name = name->next;
    if (!name && (name = malloc(sizeof *name + strlen(text) + 1))) {
        strcpy(name->text, text);
        name->next = names;
        names = name;
    }
    return name ? name->text : NULL;
}

/* ---- records ---- */

/* The values of CUpti_ActivityMemcpyKind. */
static uint8_t copy_kind(const struct sim_work *work)
{
    static const uint8_t known[3][3] = {
        [SIM_PLACE_HOST] = { [SIM_PLACE_HOST] = 9, [SIM_PLACE_DEVICE] = 1, [SIM_PLACE_ARRAY] = 3 },
        [SIM_PLACE_DEVICE] = { [SIM_PLACE_HOST] = 2, [SIM_PLACE_DEVICE] = 8, [SIM_PLACE_ARRAY] = 7 },
        [SIM_PLACE_ARRAY] = { [SIM_PLACE_HOST] = 4, [SIM_PLACE_DEVICE] = 6, [SIM_PLACE_ARRAY] = 5 },
    };
    return known[work->from][work->to];
}

union record {
    struct kernel_record kernel;
    struct copy_record copy;
    struct set_record set;
    struct graph_record graph;
};

/* Fills in a record, and returns its size in bytes. */
static size_t make_record(union record *record, const struct pending *from, uint64_t start, uint64_t end)
{
    const struct sim_work *work = &from->work;
    memset(record, 0, sizeof *record);
#define COMMON_TO_ALL(kind_)                                                                                 \
    .kind = (kind_), .start = start, .end = end, .context = work->context, .stream = work->stream,           \
    .correlation = (uint32_t)work->correlation, .graph = work->graph
#define COMMON(kind_) COMMON_TO_ALL(kind_), .node = work->node
    switch (work->kind) {
    case SIM_WORK_KERNEL:
        record->kernel = (struct kernel_record){ COMMON(SIMCUPTI_CONCURRENT_KERNEL), .completed = end,
                                                 .name = lasting_name(from->name) };
        return sizeof record->kernel;
    case SIM_WORK_COPY:
        record->copy = (struct copy_record){ COMMON(SIMCUPTI_MEMCPY), .bytes = work->bytes,
                                             .copy_kind = copy_kind(work) };
        return sizeof record->copy;
    case SIM_WORK_GRAPH:
        record->graph = (struct graph_record){ COMMON_TO_ALL(SIMCUPTI_GRAPH_TRACE) };
        return sizeof record->graph;
    default:
        record->set = (struct set_record){ COMMON(SIMCUPTI_MEMSET), .bytes = work->bytes };
        return sizeof record->set;
    }
#undef COMMON
#undef COMMON_TO_ALL
}

static size_t record_bytes(const uint8_t *record)
{
    uint32_t kind;
    memcpy(&kind, record, sizeof kind);
    return kind == SIMCUPTI_CONCURRENT_KERNEL ? sizeof(struct kernel_record)
           : kind == SIMCUPTI_MEMCPY          ? sizeof(struct copy_record)
           : kind == SIMCUPTI_GRAPH_TRACE     ? sizeof(struct graph_record)
                                              : sizeof(struct set_record);
}

static void give_buffer_back(void)
{
    if (buffer.memory)
        complete(NULL, 0, buffer.memory, buffer.bytes, buffer.used);
    buffer = (struct buffer){ 0 };
}

static bool have_room(size_t bytes)
{
    if (buffer.memory && buffer.used + bytes > buffer.bytes)
        give_buffer_back();
    if (!buffer.memory) {
        size_t records = 0;
        buffer.used = 0;
        request(&buffer.memory, &buffer.bytes, &records);
    }
    return buffer.memory && bytes <= buffer.bytes;
}

/* SIMCUPTI_DROP=N: every Nth record is dropped. */
static bool must_drop(void)
{
    const long every = simcupti_number("SIMCUPTI_DROP");
    made++;
    return every && made % (uint64_t)every == 0;
}

static void deliver(const struct pending *from, uint64_t start, uint64_t end)
{
    static const char *const words[] = { "kernel", "copy", "set", "graph" };
    union record record;
    const size_t bytes = make_record(&record, from, start, end);
    if (must_drop() || !have_room(bytes)) {
        dropped++;
        return;
    }
    memcpy(buffer.memory + buffer.used, &record, bytes);
    buffer.used += bytes;
    const struct sim_work *work = &from->work;
    simcupti_log("%s %u %llu %llu %llu %u %u %u %llu %u %s\n", words[work->kind], (unsigned)work->correlation,
                 (unsigned long long)start, (unsigned long long)end, (unsigned long long)work->bytes,
                 work->kind == SIM_WORK_COPY ? copy_kind(work) : 0U, work->context, work->stream,
                 (unsigned long long)work->node, work->graph, work->name ? from->name : "-");
}

static uint64_t to_ticks(int64_t ns, int64_t last_ns, uint64_t last_ticks)
{
    if (last_ns <= zero_ns)
        return last_ticks;
    const __int128 ticks = (__int128)(last_ticks - zero_ticks) * (ns - zero_ns) / (last_ns - zero_ns);
    return zero_ticks + (uint64_t)ticks;
}

EXPORTED int32_t cuptiActivityFlushAll(uint32_t forced)
{
    REFUSABLE;
    (void)forced;
    pthread_mutex_lock(&lock);
    if (!request || !timestamp) {
        pthread_mutex_unlock(&lock);
        return SIMCUPTI_NOT_INITIALIZED;
    }
    const int64_t last_ns = now_ns();
    const uint64_t last_ticks = timestamp();
    while (first && first->work.end_ns <= last_ns) {
        struct pending *done = first;
        first = done->next;
        newest = newest == done ? NULL : newest;
        deliver(done, to_ticks(done->work.start_ns, last_ns, last_ticks),
                to_ticks(done->work.end_ns, last_ns, last_ticks));
        free(done);
    }
    give_buffer_back();
    pthread_mutex_unlock(&lock);
    return SIMCUPTI_SUCCESS;
}

EXPORTED int32_t cuptiActivityGetNextRecord(uint8_t *memory, size_t valid, uint8_t **record)
{
    REFUSABLE;
    uint8_t *next = *record ? *record + record_bytes(*record) : memory;
    if (!memory || next >= memory + valid)
        return SIMCUPTI_MAX_LIMIT_REACHED;
    *record = next;
    return SIMCUPTI_SUCCESS;
}

EXPORTED int32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count)
{
    REFUSABLE;
    (void)context;
    (void)stream;
    pthread_mutex_lock(&lock);
    *count = dropped;
    if (dropped)
        simcupti_log("dropped %zu\n", dropped);
    dropped = 0;
    pthread_mutex_unlock(&lock);
    return SIMCUPTI_SUCCESS;
}

/* ---- settings ---- */

EXPORTED int32_t cuptiActivityRegisterCallbacks(simcupti_request *take, simcupti_complete *give)
{
    REFUSABLE;
    if (!take || !give)
        return SIMCUPTI_INVALID_PARAMETER;
    pthread_mutex_lock(&lock);
    request = take;
    complete = give;
    pthread_mutex_unlock(&lock);
    return SIMCUPTI_SUCCESS;
}

EXPORTED int32_t cuptiActivityRegisterTimestampCallback(uint64_t (*now)(void))
{
    REFUSABLE;
    if (!now)
        return SIMCUPTI_INVALID_PARAMETER;
    pthread_mutex_lock(&lock);
    timestamp = now;
    zero_ns = now_ns();
    zero_ticks = now();
    pthread_mutex_unlock(&lock);
    return SIMCUPTI_SUCCESS;
}

static int32_t set_kind(int32_t kind, bool on)
{
    const long last = simcupti_number("SIMCUPTI_LAST_KIND");
    if (kind < 1 || kind >= SIMCUPTI_KINDS || (last && kind > last))
        return SIMCUPTI_INVALID_KIND;
    pthread_mutex_lock(&lock);
    kinds[kind] = on;
    had_kinds |= on;
    pthread_mutex_unlock(&lock);
    return SIMCUPTI_SUCCESS;
}

EXPORTED int32_t cuptiActivityEnable(int32_t kind)
{
    REFUSABLE;
    return set_kind(kind, true);
}

EXPORTED int32_t cuptiActivityDisable(int32_t kind)
{
    REFUSABLE;
    return set_kind(kind, false);
}

bool simcupti_has_ended(void)
{
    pthread_mutex_lock(&lock);
    const bool has_ended = had_kinds && !memchr(kinds, true, sizeof kinds);
    pthread_mutex_unlock(&lock);
    return has_ended;
}

bool simcupti_has_whole_graphs(void)
{
    pthread_mutex_lock(&lock);
    const bool has_whole_graphs = kinds[SIMCUPTI_GRAPH_TRACE];
    pthread_mutex_unlock(&lock);
    return has_whole_graphs;
}

bool simcupti_has_unfinished_work(void)
{
    pthread_mutex_lock(&lock);
    const bool has_unfinished = last_end_ns > now_ns();
    pthread_mutex_unlock(&lock);
    return has_unfinished;
}

void simcupti_forget_work(void)
{
    pthread_mutex_lock(&lock);
    had_kinds = false;
    while (first) {
        struct pending *gone = first;
        first = gone->next;
        newest = NULL;
        free(gone);
    }
    memset(kinds, 0, sizeof kinds);
    request = NULL;
    complete = NULL;
    timestamp = NULL;
    buffer = (struct buffer){ 0 };
    dropped = 0;
    pthread_mutex_unlock(&lock);
}
