#include "activity.h"

#include "graph_launches.h"

#include <string.h>

/* Values of CUpti_ActivityKind. */
enum { MEMCPY = 1, MEMSET = 2, CONCURRENT_KERNEL = 10, MEMCPY2 = 22 };

const int32_t ct_activity_kinds[] = { CONCURRENT_KERNEL, MEMCPY, MEMSET, MEMCPY2, 0 };

/* The offsets of a record's fields, in bytes. All records begin with their kind, so 0 means that there is no
 * such field. CUPTI appends fields to records and never moves any. They hold for
 * CUpti_ActivityKernel5 to 10, Memcpy3 to 6, Memset2 to 4, MemcpyPtoP2 to 4 and GraphTrace to GraphTrace2,
 * from CUDA 11.0 to 13.0 (docs.nvidia.com/cupti, and the headers of CUDA 13.0). */
struct layout {
    int32_t kind;
    enum ct_gpu_work_kind work;
    uint8_t start, end, device, context, stream, correlation; /* times of 8 bytes, numbers of 4 */
    uint8_t bytes, name, node;                                /* 8 bytes each */
    uint8_t graph;                                            /* 4 bytes */
    uint8_t copy;                                             /* 1 byte: CUpti_ActivityMemcpyKind */
    uint8_t least; /* bytes up to the end of the last of these fields */
};
static const struct layout layouts[] = {
    { .kind = CONCURRENT_KERNEL,
      .work = CT_GPU_KERNEL,
      .start = 16,
      .end = 24,
      .device = 40,
      .context = 44,
      .stream = 48,
      .correlation = 92,
      .name = 104,
      .node = 144,
      .graph = 156,
      .least = 160 },
    { .kind = MEMCPY,
      .work = CT_GPU_COPY,
      .start = 16,
      .end = 24,
      .device = 32,
      .context = 36,
      .stream = 40,
      .correlation = 44,
      .bytes = 8,
      .node = 64,
      .graph = 72,
      .copy = 4,
      .least = 76 },
    { .kind = MEMSET,
      .work = CT_GPU_SET,
      .start = 16,
      .end = 24,
      .device = 32,
      .context = 36,
      .stream = 40,
      .correlation = 44,
      .bytes = 8,
      .node = 64,
      .graph = 72,
      .least = 76 },
    { .kind = MEMCPY2,
      .work = CT_GPU_COPY,
      .start = 16,
      .end = 24,
      .device = 32,
      .context = 36,
      .stream = 40,
      .correlation = 60,
      .bytes = 8,
      .node = 72,
      .graph = 80,
      .copy = 4,
      .least = 84 },
    { .kind = CT_ACTIVITY_GRAPH_TRACE,
      .work = CT_GPU_GRAPH,
      .start = 8,
      .end = 16,
      .device = 24,
      .context = 32,
      .stream = 36,
      .correlation = 4,
      .graph = 28,
      .least = 40 },
};

/* Copies from and to arrays count as copies from and to the device. */
static uint8_t transfer_of(uint8_t copy_kind)
{
    static const uint8_t transfers[] = {
        [1] = CT_TRANSFER_HTOD, [2] = CT_TRANSFER_DTOH,  [3] = CT_TRANSFER_HTOD, [4] = CT_TRANSFER_DTOH,
        [5] = CT_TRANSFER_DTOD, [6] = CT_TRANSFER_DTOD,  [7] = CT_TRANSFER_DTOD, [8] = CT_TRANSFER_DTOD,
        [9] = CT_TRANSFER_HTOH, [10] = CT_TRANSFER_PTOP,
    };
    return copy_kind < sizeof(transfers) ? transfers[copy_kind] : CT_TRANSFER_UNKNOWN;
}

/* Strings of the names in one buffer. CUPTI shares a kernel's name among its records. Other buffers may have
 * another name at the same address, after a module has been unloaded. */
enum { MEMO_BITS = 8, MEMOS = 1 << MEMO_BITS };
struct memo {
    const char *name;
    uint32_t string;
};

static uint32_t string_of(const struct ct_gpu_host *host, struct memo *memos, const char *name)
{
    if (!name)
        return 0;
    struct memo *memo = &memos[(uint64_t)(uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15) >> (64 - MEMO_BITS)];
    if (memo->name != name) {
        host->release(memo->string);
        *memo = (struct memo){ name, host->text(name) };
    }
    return memo->string;
}

static uint64_t word(const uint8_t *record, uint8_t offset)
{
    uint64_t value = 0;
    if (offset)
        memcpy(&value, record + offset, sizeof(value));
    return value;
}

static uint32_t half(const uint8_t *record, uint8_t offset)
{
    uint32_t value = 0;
    if (offset)
        memcpy(&value, record + offset, sizeof(value));
    return value;
}

static const struct layout *layout_of(const uint8_t *record)
{
    int32_t kind;
    memcpy(&kind, record, sizeof(kind));
    for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
        if (layouts[i].kind == kind)
            return &layouts[i];
    }
    return NULL;
}

/* A record that has been read. */
struct piece {
    struct ct_gpu_work work;
    uint64_t start, end;
    uint32_t correlation; /* 0 for the body of a conditional node, whose launch must be found */
    uint32_t collections; /* since it was returned */
};

/* Work in bodies of conditional nodes, until the work around it has been returned. */
enum { WAITING = 1024, PATIENCE = 10 };
static struct piece waiting[WAITING];
static size_t waiting_count;

/* CUPTI of CUDA 11.7 also returns the nodes of graphs that it records as a whole (CUPTI's release notes of
 * CUDA 11.7 Update 1). */
static bool is_within(const struct piece *piece, const struct ct_activity_limits *limits)
{
    const bool is_node = piece->work.kind != CT_GPU_GRAPH && piece->work.graph != 0;
    const bool is_early = limits->after != 0 && piece->correlation <= limits->after;
    return !is_early && piece->correlation < limits->before && !(is_node && limits->without_nodes);
}

/* Passes the work to the host if it is within the limits. */
static void pass(const struct ct_gpu_host *host, const struct piece *piece,
                 const struct ct_activity_limits *limits)
{
    if (is_within(piece, limits))
        host->work(&piece->work, piece->end, piece->end - piece->start, piece->correlation);
}

/* Returns false if the record has no times. CUPTI sets both to 0 if it could not collect them. */
static bool read_record(const struct ct_gpu_host *host, const struct layout *layout, const uint8_t *record,
                        const struct ct_activity_limits *limits, struct memo *memos)
{
    const char *name = (const char *)(uintptr_t)word(record, layout->name);
    struct piece piece = {
        .work = { .bytes = word(record, layout->bytes),
                  .graph_node = word(record, layout->node),
                  .device = half(record, layout->device),
                  .context = half(record, layout->context),
                  .stream = half(record, layout->stream),
                  .graph = half(record, layout->graph),
                  .kind = (uint8_t)layout->work,
                  .copy_kind = layout->copy ? transfer_of(record[layout->copy]) : 0 },
        .start = word(record, layout->start),
        .end = word(record, layout->end),
        .correlation = half(record, layout->correlation),
    };
    if (piece.start == 0 || piece.end < piece.start)
        return false;
    const bool is_body = piece.work.graph != 0 && piece.correlation == 0;
    if (is_body && waiting_count < WAITING) {
        piece.work.kernel = name ? host->text(name) : 0;
        waiting[waiting_count++] = piece;
        return true;
    }
    if (piece.work.graph != 0 && !is_body)
        ct_graph_launches_note(piece.work.graph, piece.correlation, piece.start);
    piece.work.kernel = string_of(host, memos, name);
    pass(host, &piece, limits);
    return true;
}

void ct_activity_read(const struct ct_gpu_host *host, const struct ct_cupti *cupti, uint8_t *buffer,
                      size_t valid, const struct ct_activity_limits *limits)
{
    struct memo memos[MEMOS] = { { 0 } };
    uint64_t without_times = 0;
    for (uint8_t *record = NULL; cupti->ActivityGetNextRecord(buffer, valid, &record) == 0;) {
        const struct layout *layout = layout_of(record);
        if (layout && layout->least <= valid - (size_t)(record - buffer))
            without_times += !read_record(host, layout, record, limits, memos);
    }
    for (int i = 0; i < MEMOS; i++)
        host->release(memos[i].string);
    if (without_times)
        host->drop(without_times);
}

void ct_activity_settle(const struct ct_gpu_host *host, const struct ct_activity_limits *limits, bool is_last)
{
    size_t kept = 0;
    for (size_t i = 0; i < waiting_count; i++) {
        struct piece *piece = &waiting[i];
        piece->correlation = ct_graph_launches_find(piece->work.graph, piece->start);
        if (piece->correlation == 0 && !is_last && piece->collections++ < PATIENCE) {
            waiting[kept++] = *piece;
            continue;
        }
        pass(host, piece, limits);
        host->release(piece->work.kernel);
    }
    waiting_count = kept;
}
