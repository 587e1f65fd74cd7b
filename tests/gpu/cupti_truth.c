/*
 * Counts kernels, copies, sets and calls with CUPTI, independently of cudatrace. run.py compares traces with
 * these counts.
 *
 * If CUDA_INJECTION64_PATH names this library, the driver loads the library into a process, and calls
 * InitializeInjection() during cuInit. The library counts kernels, copies and sets from CUPTI's activity
 * records. With CUPTI_TRUTH_CALLBACKS=1, it also counts calls to driver and runtime functions, using CUPTI's
 * callback API. At exit, the library writes the file $CUPTI_TRUTH_OUT.<pid>, whose lines have tab-separated
 * fields:
 *
 * - kernel MANGLED COUNT: every kernel that ran, including the kernels of graph launches
 * - graph_kernel MANGLED COUNT: only the kernels of graph launches
 * - copy KIND sync|async BYTES COUNT: kinds as in the `copies` view, including the copies of graph launches
 * - graph_copy KIND sync|async BYTES COUNT
 * - memset sync|async BYTES COUNT
 * - graph_memset sync|async BYTES COUNT
 * - call FUNCTION COUNT: of the driver; this and the next two are written only with CUPTI_TRUTH_CALLBACKS=1
 * - runtime FUNCTION COUNT: of a shared libcudart
 * - runtime_static FUNCTION COUNT: of a copy that is linked into a library, as in cuBLAS and cuDNN
 * - dropped COUNT: activity records that CUPTI lost; run.py refuses any count but 0
 * - error FUNCTION CODE: a CUPTI function that failed; run.py refuses this as well
 * - end
 *
 * A program can obtain the counts before it exits by calling cupti_truth_snapshot(), which it finds with
 * dlopen() and dlsym().
 *
 * This library makes no CUDA calls itself, and writes nothing to the program's streams.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <ctype.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cupti.h>

/* Newer versions of CUPTI only append fields to records. Headers older than CUDA 13 do not define the newest
 * structs, and have no field copyCount. */
#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
typedef CUpti_ActivityMemcpy6 copy_record;
#define COPY_COUNT(copy) ((copy)->copyCount ? (copy)->copyCount : 1)
#else
typedef CUpti_ActivityKernel9 kernel_record;
typedef CUpti_ActivityMemcpy5 copy_record;
#define COPY_COUNT(copy) ((uint64_t)1)
#endif
typedef CUpti_ActivityMemcpyPtoP4 peer_copy_record;
typedef CUpti_ActivityMemset4 set_record;

enum {
    BUFFER_BYTES = 8 << 20,
    RECORD_ALIGN = 8,
    CALLBACK_IDS = 4096, /* CUDA 13.0 has 807 callback IDs. The last entry counts calls whose ID is out of
                          * range. */
    FRAMES_MAX = 64,
    RUNTIMES_MAX = 16,
    PATH_BYTES = 4096,
};

struct kernel_count {
    char *name; /* NULL if the slot is free */
    uint64_t count;
    uint64_t graph_count;
};

struct transfer_count {
    uint64_t bytes;
    uint64_t count;
};

enum transfer_kind { HTOD, DTOH, DTOD, HTOH, PTOP, UNKNOWN, SET, TRANSFER_KINDS };

static const char *const transfer_names[TRANSFER_KINDS] = {
    [HTOD] = "HtoD", [DTOH] = "DtoH", [DTOD] = "DtoD",
    [HTOH] = "HtoH", [PTOP] = "PtoP", [UNKNOWN] = "unknown",
};

/* `lock` protects the variables below, except `calls`, whose elements are atomic. A lock is needed because
 * CUPTI delivers activity buffers on a separate thread. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel_count *kernels; /* Hash table with open addressing; kernel_slots is a power of two. */
static size_t kernel_slots;
static size_t kernel_used;
static struct transfer_count transfers[TRANSFER_KINDS][2][2]; /* [kind][async][graph] */
static uint64_t dropped_records;
static struct {
    const char *where;
    int code;
} first_error;

enum call_kind { DRIVER, RUNTIME, RUNTIME_STATIC, CALL_KINDS };
static const char *const call_lines[CALL_KINDS] = { "call", "runtime", "runtime_static" };
static const CUpti_CallbackDomain call_domains[CALL_KINDS] = {
    CUPTI_CB_DOMAIN_DRIVER_API,
    CUPTI_CB_DOMAIN_RUNTIME_API,
    CUPTI_CB_DOMAIN_RUNTIME_API,
};
static _Atomic uint64_t calls[CALL_KINDS][CALLBACK_IDS];
/* The names of functions, which belong to CUPTI. This library gets the names at snapshots and at exit, while
 * CUPTI is still running. */
static const char *call_names[CALL_KINDS][CALLBACK_IDS];

/* The address ranges of all shared libcudarts that were loaded when the loader's count of loads was
 * `runtimes_as_of`. */
static pthread_rwlock_t runtimes_lock = PTHREAD_RWLOCK_INITIALIZER;
static uint64_t runtimes_as_of;
static size_t runtime_count;
static struct {
    uintptr_t from, to;
} runtimes[RUNTIMES_MAX];

static atomic_bool finished; /* set before at_exit() flushes for the last time */
static bool count_calls;
static pid_t owner; /* the process that counts; a forked child inherits the counts and the handlers, but must
                     * not write anything */

static void note_error(const char *where, int code)
{
    pthread_mutex_lock(&lock);
    if (!first_error.where) {
        first_error.where = where;
        first_error.code = code;
    }
    pthread_mutex_unlock(&lock);
}

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        CUptiResult result_ = (call);                                                                        \
        if (result_ != CUPTI_SUCCESS)                                                                        \
            note_error(#call, (int)result_);                                                                 \
    } while (0)

static uint64_t name_hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash ^ (hash >> 32);
}

static struct kernel_count *kernel_slot(struct kernel_count *table, size_t slots, const char *name)
{
    size_t at = name_hash(name) & (slots - 1);
    while (table[at].name && strcmp(table[at].name, name) != 0)
        at = (at + 1) & (slots - 1);
    return &table[at];
}

/* Doubles the size of the table. If there is not enough memory, returns false, and the caller counts the
 * record as dropped. */
static bool kernel_table_grow(void)
{
    size_t slots = kernel_slots ? kernel_slots * 2 : 1024;
    struct kernel_count *table = calloc(slots, sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < kernel_slots; i++)
        if (kernels[i].name)
            *kernel_slot(table, slots, kernels[i].name) = kernels[i];
    free(kernels);
    kernels = table;
    kernel_slots = slots;
    return true;
}

static void count_kernel(const char *name, bool from_graph)
{
    if (!name)
        name = "(no name)";
    if (kernel_used * 2 >= kernel_slots && !kernel_table_grow()) {
        dropped_records++;
        return;
    }
    struct kernel_count *kernel = kernel_slot(kernels, kernel_slots, name);
    if (!kernel->name) {
        kernel->name = strdup(name);
        if (!kernel->name) {
            dropped_records++;
            return;
        }
        kernel_used++;
    }
    kernel->count++;
    if (from_graph)
        kernel->graph_count++;
}

static void count_transfer(enum transfer_kind kind, bool async, bool from_graph, uint64_t bytes,
                           uint64_t count)
{
    struct transfer_count *to = &transfers[kind][async][from_graph];
    to->bytes += bytes;
    to->count += count;
}

static enum transfer_kind transfer_kind_of(uint8_t copy_kind)
{
    switch (copy_kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
        return HTOD;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
        return DTOH;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
        return DTOD;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
        return HTOH;
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
        return PTOP;
    default:
        return UNKNOWN;
    }
}

static void count_record(const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const kernel_record *kernel = (const kernel_record *)record;
        count_kernel(kernel->name, kernel->graphNodeId != 0);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const copy_record *copy = (const copy_record *)record;
        count_transfer(transfer_kind_of(copy->copyKind), copy->flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC,
                       copy->graphNodeId != 0, copy->bytes, COPY_COUNT(copy));
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const peer_copy_record *copy = (const peer_copy_record *)record;
        count_transfer(PTOP, copy->flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC, copy->graphNodeId != 0,
                       copy->bytes, 1);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const set_record *set = (const set_record *)record;
        count_transfer(SET, set->flags & CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC, set->graphNodeId != 0, set->bytes,
                       1);
        break;
    }
    default:
        break;
    }
}

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = aligned_alloc(RECORD_ALIGN, BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
    *max_records = 0;
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream_id, uint8_t *buffer, size_t size,
                                      size_t valid_size)
{
    (void)size;
    size_t dropped = 0;
    cuptiActivityGetNumDroppedRecords(context, stream_id, &dropped);

    pthread_mutex_lock(&lock);
    dropped_records += dropped;
    CUpti_Activity *record = NULL;
    while (buffer && cuptiActivityGetNextRecord(buffer, valid_size, &record) == CUPTI_SUCCESS)
        count_record(record);
    pthread_mutex_unlock(&lock);
    free(buffer);
}

/* Returns whether the object's soname begins with libcudart. The file's name is not reliable: in a Python
 * wheel, it may be libcudart-d0da41ae.so.11.0, for example. */
static bool is_runtime(const struct dl_phdr_info *object)
{
    const ElfW(Dyn) *entry = NULL;
    const char *strings = NULL;
    size_t soname = 0;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB)
            strings = (const char *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_SONAME)
            soname = entry->d_un.d_val;
    }
    /* glibc replaces the value of DT_STRTAB with an absolute address in every object except the vDSO, which
     * the kernel provides. */
    return strings && soname && (uintptr_t)strings > object->dlpi_addr &&
           strncmp(strings + soname, "libcudart", strlen("libcudart")) == 0;
}

static int visit_first_object(struct dl_phdr_info *object, size_t size, void *loads)
{
    (void)size;
    *(uint64_t *)loads = object->dlpi_adds;
    return 1;
}

static int visit_object(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    runtimes_as_of = object->dlpi_adds;
    if (!is_runtime(object))
        return 0;
    for (int i = 0; i < object->dlpi_phnum && runtime_count < RUNTIMES_MAX; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        runtimes[runtime_count].from = object->dlpi_addr + part->p_vaddr;
        runtimes[runtime_count++].to = object->dlpi_addr + part->p_vaddr + part->p_memsz;
    }
    return 0;
}

/* Updates `runtimes` if objects have been loaded since the last update. */
static void find_runtimes(void)
{
    uint64_t loads = 0;
    dl_iterate_phdr(visit_first_object, &loads);
    pthread_rwlock_rdlock(&runtimes_lock);
    const bool known = loads == runtimes_as_of;
    pthread_rwlock_unlock(&runtimes_lock);
    if (known)
        return;
    pthread_rwlock_wrlock(&runtimes_lock);
    runtime_count = 0;
    dl_iterate_phdr(visit_object, NULL);
    pthread_rwlock_unlock(&runtimes_lock);
}

/* Returns the kind of the libcudart that was called. The libcudart is among this function's callers, because
 * it calls CUPTI. */
static enum call_kind runtime_kind(void)
{
    void *frames[FRAMES_MAX];
    const int count = backtrace(frames, FRAMES_MAX);
    enum call_kind kind = RUNTIME_STATIC;
    find_runtimes();
    pthread_rwlock_rdlock(&runtimes_lock);
    for (int i = 0; i < count && kind != RUNTIME; i++)
        for (size_t r = 0; r < runtime_count; r++)
            if ((uintptr_t)frames[i] >= runtimes[r].from && (uintptr_t)frames[i] < runtimes[r].to)
                kind = RUNTIME;
    pthread_rwlock_unlock(&runtimes_lock);
    return kind;
}

static void count_call(enum call_kind kind, CUpti_CallbackId id)
{
    atomic_fetch_add_explicit(&calls[kind][id < CALLBACK_IDS ? id : CALLBACK_IDS - 1], 1,
                              memory_order_relaxed);
}

static void CUPTIAPI callback(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *info)
{
    (void)data;
    switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
        if (((const CUpti_CallbackData *)info)->callbackSite == CUPTI_API_ENTER)
            count_call(DRIVER, id);
        break;
    case CUPTI_CB_DOMAIN_RUNTIME_API:
        if (((const CUpti_CallbackData *)info)->callbackSite != CUPTI_API_ENTER)
            break;
        if (count_calls)
            count_call(runtime_kind(), id);
        /* Flush now, because cudaDeviceReset() discards all records that have not been flushed, and so does
         * destroying a context. */
        if (id == CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020)
            cuptiActivityFlushAll(0);
        break;
    case CUPTI_CB_DOMAIN_RESOURCE:
        if (!atomic_load(&finished))
            cuptiActivityFlushAll(0);
        break;
    default:
        break;
    }
}

static void write_transfers(FILE *out, enum transfer_kind kind, const char *line)
{
    for (int async = 0; async < 2; async++) {
        const struct transfer_count *direct = &transfers[kind][async][0];
        const struct transfer_count *graph = &transfers[kind][async][1];
        const char *name = transfer_names[kind] ? transfer_names[kind] : "";
        const char *tab = transfer_names[kind] ? "\t" : "";
        const char *mode = async ? "async" : "sync";
        if (direct->count + graph->count)
            fprintf(out, "%s\t%s%s%s\t%llu\t%llu\n", line, name, tab, mode,
                    (unsigned long long)(direct->bytes + graph->bytes),
                    (unsigned long long)(direct->count + graph->count));
        if (graph->count)
            fprintf(out, "graph_%s\t%s%s%s\t%llu\t%llu\n", line, name, tab, mode,
                    (unsigned long long)graph->bytes, (unsigned long long)graph->count);
    }
}

/* Returns the length of a function's name without CUPTI's suffix. To the name of a runtime function, CUPTI
 * appends the CUDA version that introduced the function, as in cudaLaunchKernel_ptsz_v7000. */
static int name_length(enum call_kind kind, const char *name)
{
    const size_t length = strlen(name);
    size_t at = length;
    while (kind != DRIVER && at > 0 && isdigit((unsigned char)name[at - 1]))
        at--;
    const bool has_version = length - at >= 4 && at >= 2 && name[at - 1] == 'v' && name[at - 2] == '_';
    return (int)(has_version ? at - 2 : length);
}

static void write_calls(FILE *out, enum call_kind kind)
{
    for (unsigned id = 0; id < CALLBACK_IDS; id++) {
        uint64_t count = atomic_load_explicit(&calls[kind][id], memory_order_relaxed);
        if (!count)
            continue;
        const char *name = call_names[kind][id] ? call_names[kind][id] : "(unnamed)";
        fprintf(out, "%s\t%.*s\t%llu\n", call_lines[kind], name_length(kind, name), name,
                (unsigned long long)count);
    }
}

/* Writes the file under a temporary name and then renames it, so that a reader finds either the complete file
 * or no file. */
static int write_file(const char *path)
{
    char partial[PATH_BYTES + 8];
    snprintf(partial, sizeof partial, "%s.part", path);
    FILE *out = fopen(partial, "we");
    if (!out)
        return -1;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < kernel_slots; i++) {
        const struct kernel_count *kernel = &kernels[i];
        if (!kernel->name)
            continue;
        fprintf(out, "kernel\t%s\t%llu\n", kernel->name, (unsigned long long)kernel->count);
        if (kernel->graph_count)
            fprintf(out, "graph_kernel\t%s\t%llu\n", kernel->name, (unsigned long long)kernel->graph_count);
    }
    for (enum transfer_kind kind = HTOD; kind < SET; kind++)
        write_transfers(out, kind, "copy");
    write_transfers(out, SET, "memset");
    for (enum call_kind kind = DRIVER; count_calls && kind < CALL_KINDS; kind++)
        write_calls(out, kind);
    fprintf(out, "dropped\t%llu\n", (unsigned long long)dropped_records);
    if (first_error.where)
        fprintf(out, "error\t%s\t%d\n", first_error.where, first_error.code);
    fprintf(out, "end\n");
    pthread_mutex_unlock(&lock);

    return fclose(out) == 0 ? rename(partial, path) : -1;
}

static void write_truth(void)
{
    const char *base = getenv("CUPTI_TRUTH_OUT");
    char path[PATH_BYTES];
    if (!base)
        return;
    snprintf(path, sizeof path, "%s.%ld", base, (long)owner);
    write_file(path);
}

static void ask_for_names(void)
{
    for (enum call_kind kind = DRIVER; count_calls && kind < CALL_KINDS; kind++)
        for (unsigned id = 0; id < CALLBACK_IDS; id++)
            if (cuptiGetCallbackName(call_domains[kind], id, &call_names[kind][id]) != CUPTI_SUCCESS)
                call_names[kind][id] = NULL;
}

/*
 * Writes the counts so far to a file. The counts of calls are exact only if no other thread is making calls.
 * For kernels, copies and sets, the counts include only records that CUPTI has already delivered, because the
 * function does not request more of them. Returns 0, or -1 on failure. Only one thread at a time may call
 * this function.
 */
__attribute__((visibility("default"))) int cupti_truth_snapshot(const char *path);

int cupti_truth_snapshot(const char *path)
{
    if (!owner || getpid() != owner || strlen(path) >= PATH_BYTES)
        return -1;
    ask_for_names();
    return write_file(path);
}

/*
 * An exit handler. It is registered during cuInit, after the handlers of CUPTI and the driver. Therefore,
 * exit() runs this handler first, while CUPTI's records are still available.
 */
static void at_exit(void)
{
    if (getpid() != owner)
        return;
    size_t dropped = 0;
    atomic_store(&finished, true);
    TRY(cuptiActivityFlushAll(0));
    TRY(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    TRY(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    ask_for_names();
    pthread_mutex_lock(&lock);
    dropped_records += dropped;
    pthread_mutex_unlock(&lock);
    write_truth();
}

/*
 * Runs after all exit handlers, including the runtime's, which unloads the runtime's modules. CUPTI may
 * already have shut down, so this function does not call CUPTI. It writes the counts again, which now include
 * the callbacks since at_exit().
 */
__attribute__((destructor)) static void at_unload(void)
{
    if (owner && getpid() == owner)
        write_truth();
}

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
    if (owner == getpid())
        return 1;
    owner = getpid();
    const char *wants_calls = getenv("CUPTI_TRUTH_CALLBACKS");
    count_calls = wants_calls && strcmp(wants_calls, "1") == 0;

    CUpti_SubscriberHandle subscriber;
    CUptiResult subscribed = cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)callback, NULL);
    if (subscribed == CUPTI_SUCCESS) {
        TRY(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                                CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020));
        TRY(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING));
        if (count_calls) {
            void *frame;
            backtrace(&frame, 1); /* the first call loads the unwinder */
            TRY(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API));
            TRY(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
        }
    } else if (count_calls) {
        note_error("cuptiSubscribe", (int)subscribed);
    }

    TRY(cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed));
    TRY(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    TRY(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
    TRY(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY2));
    TRY(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
    atexit(at_exit);
    return 1;
}
