/* Records: what a lane carries. Owned by proto/, written by the hook, read by the collector.
 *
 * A record is one or more 32-byte slots. The first slot is struct ct_record; payload, where the kind has
 * one, follows in the next slots without a break (a record never wraps: a CT_KIND_PAD record fills the end
 * of the ring instead). A reader checks `kind` and `slots` of every record before it believes the rest. */
#ifndef CT_PROTO_RECORD_H
#define CT_PROTO_RECORD_H

#include <assert.h>
#include <stdint.h>

enum {
    CT_SLOT_BYTES = 32,
    CT_SLOTS_MAX = 255,                                     /* a record's length; fits `slots` */
    CT_STRING_MAX = (CT_SLOTS_MAX - 1) * CT_SLOT_BYTES - 1, /* bytes of a string definition, 8127 */
};

/* Says what a record is, and with it the type of its payload and the meaning of `value`. */
enum ct_kind {
    CT_KIND_PAD = 0,      /* skip `slots` slots */
    CT_KIND_CALL = 1,     /* a returned call; value: see CT_FLAG_BYTES */
    CT_KIND_LAUNCH = 2,   /* a call; value: stream; struct ct_launch */
    CT_KIND_TRANSFER = 3, /* a call; value: bytes; struct ct_transfer */
    CT_KIND_ALLOC = 4,    /* a call; value: bytes; struct ct_alloc; see CT_FLAG_FREE */
    CT_KIND_GRAPH = 5,    /* a call; value: stream; struct ct_graph_launch */
    CT_KIND_STRING = 6,   /* defines string number `value`; payload: NUL-terminated bytes */
    CT_KIND_THREAD = 7,   /* from here on the lane belongs to thread `value`; struct ct_thread_name */
    CT_KIND_OBJECTS = 8,  /* a call; value: see CT_FLAG_BYTES; struct ct_objects */
    CT_KIND_RANGE =
        9, /* a range or mark of NVTX; value: the application's payload; struct ct_range and texts */
    CT_KIND_NODES = 10, /* a call that made an executable graph; value: the graph; struct ct_graph_nodes */
    CT_KIND_NAME = 11,  /* names an object from here on; value: its handle; struct ct_object_name and text */
    CT_KIND_COUNT
};

/* True if a record is a call's, or a range's: the others say what those are about. */
static inline int ct_kind_is_call(unsigned kind)
{
    return kind != CT_KIND_PAD && kind != CT_KIND_STRING && kind != CT_KIND_THREAD && kind != CT_KIND_NAME;
}

/* Bits 60 to 63 of ct_record.span. */
enum {
    CT_FLAG_BYTES = 1, /* CT_KIND_CALL, CT_KIND_OBJECTS: value is a number of bytes */
    CT_FLAG_FREE = 2, /* CT_KIND_ALLOC: the memory was given back; value: bytes where the call says, else 0 */
    CT_FLAG_CAPTURED = 4, /* the call was captured into a graph: nothing ran on the GPU */
    /* CT_KIND_ALLOC: how many bytes is not known. CT_KIND_GRAPH: nor how many kernels run. CT_KIND_NODES:
     * there may be other nodes than are counted. */
    CT_FLAG_UNKNOWN = 8,
    CT_FLAG_SIZE =
        8, /* CT_KIND_OBJECTS, besides CT_FLAG_BYTES: so many has the memory at the second object */
};

/* True if `value` of a call is a number of bytes that it moved, set, got or asked for. */
static inline int ct_kind_has_bytes(unsigned kind, unsigned flags)
{
    if (kind == CT_KIND_ALLOC)
        return !(flags & (CT_FLAG_FREE | CT_FLAG_UNKNOWN));
    return kind == CT_KIND_TRANSFER ||
           ((kind == CT_KIND_CALL || kind == CT_KIND_OBJECTS) && flags & CT_FLAG_BYTES);
}

struct ct_record {
    uint64_t end;      /* clock ticks at return, see proto/clock.h */
    uint64_t span;     /* bits 0-55 duration in ticks, 56-59 depth (15 and deeper are 15), 60-63 flags */
    uint16_t function; /* index into the segment's function directory */
    uint8_t kind;      /* enum ct_kind */
    uint8_t slots;     /* length with payload, 1 to CT_SLOTS_MAX */
    int32_t status;    /* what the call returned: CUresult for the driver layer */
    uint64_t value;    /* by kind */
};
static_assert(sizeof(struct ct_record) == CT_SLOT_BYTES, "ct_record");

#define CT_SPAN_TICKS_MAX ((UINT64_C(1) << 56) - 1)
#define CT_SPAN_DEPTH_MAX 15U

static inline uint64_t ct_span(uint64_t ticks, uint32_t depth, uint32_t flags)
{
    const uint64_t d = depth < CT_SPAN_DEPTH_MAX ? depth : CT_SPAN_DEPTH_MAX;
    return (ticks & CT_SPAN_TICKS_MAX) | d << 56 | (uint64_t)flags << 60;
}
static inline uint64_t ct_span_ticks(uint64_t span)
{
    return span & CT_SPAN_TICKS_MAX;
}
static inline uint32_t ct_span_depth(uint64_t span)
{
    return (uint32_t)(span >> 56) & 15U;
}
static inline uint32_t ct_span_flags(uint64_t span)
{
    return (uint32_t)(span >> 60);
}

/* Ticks at entry. 2^56 ticks are 278 days at 3 GHz, 834 at 1 GHz: no call is longer. A counter that began
 * anew meanwhile (suspend) ends a call before it began; the difference then tells the start as long as that
 * was below 2^56. */
static inline uint64_t ct_record_start(const struct ct_record *record)
{
    const uint64_t ticks = ct_span_ticks(record->span);
    return ticks <= record->end ? record->end - ticks : (record->end - ticks) & CT_SPAN_TICKS_MAX;
}

struct ct_launch {
    uint32_t kernel; /* string number of the mangled name, 0 when unknown */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
};
static_assert(sizeof(struct ct_launch) == 32, "ct_launch");

/* Copies and sets of memory. */
enum ct_transfer_kind {
    CT_TRANSFER_UNKNOWN = 0,
    CT_TRANSFER_HTOD = 1,
    CT_TRANSFER_DTOH = 2,
    CT_TRANSFER_DTOD = 3,
    CT_TRANSFER_HTOH = 4,
    CT_TRANSFER_PTOP = 5,
    CT_TRANSFER_SET = 6,
    CT_TRANSFER_COUNT
};

struct ct_transfer {
    uint64_t stream;
    uint64_t source;      /* address; 0 for arrays and sets */
    uint64_t destination; /* address; 0 for arrays */
    uint8_t transfer;     /* enum ct_transfer_kind */
    uint8_t async;        /* 0 or 1 */
    uint8_t reserved[6];  /* zero */
};
static_assert(sizeof(struct ct_transfer) == 32, "ct_transfer");

enum ct_alloc_kind {
    CT_ALLOC_DEVICE = 0,
    CT_ALLOC_MANAGED = 1,
    CT_ALLOC_HOST = 2,
    CT_ALLOC_REGISTERED = 3,
    CT_ALLOC_POOL = 4,      /* stream-ordered, of a memory pool */
    CT_ALLOC_PHYSICAL = 5,  /* memory without an address: `address` is its handle */
    CT_ALLOC_RESERVED = 6,  /* addresses without memory */
    CT_ALLOC_MAPPED = 7,    /* physical memory at a reserved address; `pool` is its handle */
    CT_ALLOC_IPC = 8,       /* another process's memory, opened here */
    CT_ALLOC_ARRAY = 9,     /* `address` is the array's handle */
    CT_ALLOC_EXTERNAL = 10, /* memory of another interface, mapped here; `pool` is its handle */
    CT_ALLOC_COUNT
};

struct ct_alloc {
    uint64_t address;
    uint64_t stream; /* stream of a stream-ordered allocation, else 0 */
    uint64_t pool;   /* handle, 0 for the current pool or none */
    /* enum ct_alloc_kind. Of memory given back, CT_ALLOC_DEVICE stands for all plain kinds, and CT_ALLOC_POOL
     * for the same given back in the order of `stream`. */
    uint8_t alloc;
    uint8_t shared; /* 1: the process may hold it already, and then has to give it back once more */
    uint8_t reserved[6];
};
static_assert(sizeof(struct ct_alloc) == 32, "ct_alloc");

struct ct_graph_launch {
    uint64_t exec;         /* CUgraphExec */
    uint32_t kernel_nodes; /* kernels that one launch replays, child graphs included */
    uint32_t reserved[5];
};
static_assert(sizeof(struct ct_graph_launch) == 32, "ct_graph_launch");

/* CUgraphNodeType of cuda.h 13.0, which numbers them so. */
enum ct_node_kind {
    CT_NODE_KERNEL = 0,
    CT_NODE_MEMCPY = 1,
    CT_NODE_MEMSET = 2,
    CT_NODE_HOST = 3,
    CT_NODE_GRAPH = 4,
    CT_NODE_EMPTY = 5,
    CT_NODE_WAIT_EVENT = 6,
    CT_NODE_EVENT_RECORD = 7,
    CT_NODE_SEMAPHORES_SIGNAL = 8,
    CT_NODE_SEMAPHORES_WAIT = 9,
    CT_NODE_MEM_ALLOC = 10,
    CT_NODE_MEM_FREE = 11,
    CT_NODE_BATCH_MEM_OP = 12,
    CT_NODE_CONDITIONAL = 13,
    CT_NODE_KINDS
};

/* Two slots. The nodes of child graphs are counted too. */
struct ct_graph_nodes {
    uint64_t exec; /* CUgraphExec */
    uint32_t count[CT_NODE_KINDS];
};
static_assert(sizeof(struct ct_graph_nodes) == 64, "ct_graph_nodes");

/* Names what a call was about. An object's role tells what its handle is; unused places have CT_ROLE_none. */
enum { CT_OBJECTS_MAX = 3 };
struct ct_objects {
    uint64_t handle[CT_OBJECTS_MAX];
    uint8_t role[CT_OBJECTS_MAX]; /* enum ct_role of proto/names.h */
    uint8_t reserved[5];
};
static_assert(sizeof(struct ct_objects) == 32, "ct_objects");

/* A range or mark. Its texts follow in the order of their lengths, each with a NUL that its length counts; a
 * length of 0 stands for no text. They stand in the record, and not as string numbers, since applications
 * make up messages without end. */
struct ct_range {
    uint32_t message_bytes;
    uint32_t domain_bytes;   /* name; none for the default domain */
    uint32_t category_bytes; /* name; none when the category has none */
    uint32_t category;
    uint32_t color; /* ARGB, 0 for none */
    uint32_t
        payload_type; /* nvtxPayloadType_t: 0 none, 1 and 4 unsigned, 2 and 5 signed, 3 double, 6 float */
    uint64_t id;      /* identifies a process range, which may end in another thread; else 0 */
};
static_assert(sizeof(struct ct_range) == 32, "ct_range");

/* The payload of a call's record, by its kind; of a range the part before its texts. */
union ct_payload {
    struct ct_launch launch;
    struct ct_transfer transfer;
    struct ct_alloc alloc;
    struct ct_graph_launch graph;
    struct ct_graph_nodes nodes;
    struct ct_objects objects;
    struct ct_range range;
};

/* Names a thread, stream, event, context or device as the program calls it. The text follows with a NUL; an
 * empty one takes the name back. */
struct ct_object_name {
    uint32_t role;       /* enum ct_role of proto/names.h */
    uint32_t text_bytes; /* with its NUL */
    uint8_t reserved[24];
};
static_assert(sizeof(struct ct_object_name) == 32, "ct_object_name");

struct ct_thread_name {
    char name[16]; /* as prctl(PR_GET_NAME) gives it, NUL-terminated */
    uint8_t reserved[16];
};
static_assert(sizeof(struct ct_thread_name) == 32, "ct_thread_name");

#endif
