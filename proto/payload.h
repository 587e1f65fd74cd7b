/* The payloads of records (record.h), each named after its record kind. */
#ifndef CT_PROTO_PAYLOAD_H
#define CT_PROTO_PAYLOAD_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ct_launch {
    uint32_t kernel; /* string ID of the mangled name; 0 if unknown */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
};
static_assert(sizeof(struct ct_launch) == 32, "ct_launch");

/* Memory copies and memsets. */
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
    CT_ALLOC_POOL = 4,      /* stream-ordered, from a memory pool */
    CT_ALLOC_PHYSICAL = 5,  /* memory without an address: `address` is its handle */
    CT_ALLOC_RESERVED = 6,  /* addresses without memory */
    CT_ALLOC_MAPPED = 7,    /* physical memory mapped at a reserved address; `pool` is the memory's handle */
    CT_ALLOC_IPC = 8,       /* another process's memory, opened here */
    CT_ALLOC_ARRAY = 9,     /* `address` is the array's handle */
    CT_ALLOC_EXTERNAL = 10, /* memory of another API, mapped here; `pool` is the memory's handle */
    CT_ALLOC_COUNT
};

struct ct_alloc {
    uint64_t address;
    uint64_t stream; /* stream of a stream-ordered allocation, or 0 */
    uint64_t pool;   /* handle; 0 for the current pool or no pool */
    /* enum ct_alloc_kind. For freed memory, CT_ALLOC_DEVICE means any plain kind, and CT_ALLOC_POOL any plain
     * kind freed in stream order. */
    uint8_t alloc;
    uint8_t shared; /* 1: the process may already hold this memory, and must then free the memory once more */
    uint8_t reserved[6];
};
static_assert(sizeof(struct ct_alloc) == 32, "ct_alloc");

struct ct_graph_launch {
    uint64_t exec;         /* CUgraphExec */
    uint32_t kernel_nodes; /* kernels that one launch replays, including child graphs */
    uint32_t reserved[5];
};
static_assert(sizeof(struct ct_graph_launch) == 32, "ct_graph_launch");

/* The values of CUgraphNodeType in cuda.h 13.0. */
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

/* The number of nodes of each kind in an executable graph, including its child graphs. */
struct ct_graph_nodes {
    uint64_t exec; /* CUgraphExec */
    uint32_t count[CT_NODE_KINDS];
};
static_assert(sizeof(struct ct_graph_nodes) == 64, "ct_graph_nodes");

/* The objects of a call. An object's role is the type of its handle. Unused places have CT_ROLE_none. */
enum { CT_OBJECTS_MAX = 3 };
struct ct_objects {
    uint64_t handle[CT_OBJECTS_MAX];
    uint8_t role[CT_OBJECTS_MAX]; /* enum ct_role of proto/names.h */
    uint8_t reserved[5];
};
static_assert(sizeof(struct ct_objects) == 32, "ct_objects");

/* A range or mark. The struct is followed by its strings, in the order of the length fields. Each string ends
 * with a NUL, which its length includes. A length of 0 means that there is no string. The record contains the
 * strings themselves and not their IDs, since applications may generate any number of messages. */
struct ct_range {
    uint32_t message_bytes;
    uint32_t domain_bytes;   /* of the name; 0 for the default domain */
    uint32_t category_bytes; /* of the name; 0 for an unnamed category */
    uint32_t category;
    uint32_t color; /* ARGB, 0 for none */
    uint32_t
        payload_type; /* nvtxPayloadType_t: 0 none, 1 and 4 unsigned, 2 and 5 signed, 3 double, 6 float */
    uint64_t id;      /* identifies a process range, which may end in another thread; 0 for thread ranges and
                       * marks */
};
static_assert(sizeof(struct ct_range) == 32, "ct_range");

enum ct_field_type {
    CT_FIELD_UNSIGNED = 0,
    CT_FIELD_SIGNED = 1, /* value: two's complement */
    CT_FIELD_TEXT = 2,   /* value: the length of the text with its NUL; 0: the call has no text */
    CT_FIELD_TYPES
};

/* A call's fields. The struct is followed by their names, and then by the text of each field that has one,
 * each with a NUL. The record contains the names, so that it does not depend on any other record. fields.h
 * writes and reads this payload. */
enum { CT_FIELDS_MAX = 8 };
struct ct_fields {
    uint64_t value[CT_FIELDS_MAX];
    uint8_t type[CT_FIELDS_MAX]; /* enum ct_field_type */
    uint8_t count;
    uint8_t reserved[5];
    uint16_t text_bytes; /* of all names and texts */
};
static_assert(sizeof(struct ct_fields) == 80, "ct_fields");

/* The payload of a call record, by kind. For a range, this is the part before the strings. Calls with fields
 * are not included, because no decoder produces them, and their payload is larger. */
union ct_payload {
    struct ct_launch launch;
    struct ct_transfer transfer;
    struct ct_alloc alloc;
    struct ct_graph_launch graph;
    struct ct_graph_nodes nodes;
    struct ct_objects objects;
    struct ct_range range;
};

/* The program's name for a thread, stream, event, context or device. The struct is followed by the
 * NUL-terminated name. An empty name removes the object's name. */
struct ct_object_name {
    uint32_t role;       /* enum ct_role of proto/names.h */
    uint32_t text_bytes; /* includes the NUL */
    uint8_t reserved[24];
};
static_assert(sizeof(struct ct_object_name) == 32, "ct_object_name");

/* Correlations connect GPU work with the call that caused it. A correlation is a CUPTI correlation ID with
 * the number of the recording in its upper 32 bits. Each process counts its recordings of GPU work from 1,
 * because CUPTI may reuse IDs from one recording in the next. */
static inline uint64_t ct_correlation(uint32_t epoch, uint32_t cupti_id)
{
    return (uint64_t)epoch << 32 | cupti_id;
}

enum ct_gpu_work_kind {
    CT_GPU_KERNEL = 0,
    CT_GPU_COPY = 1,
    CT_GPU_SET = 2,
    CT_GPU_GRAPH = 3, /* a whole graph */
    CT_GPU_WORK_KINDS,
    /* Not work, but a report that CUPTI has dropped records. `bytes` is the number of records dropped since
     * the previous report. The record's value is 0, and its end is the time of the report. */
    CT_GPU_DROPPED = 255,
};

/* Work done by a GPU. In the record's head, end and span are the work's end and duration on the GPU, in
 * ticks. The function, status and depth are 0. */
struct ct_gpu_work {
    uint64_t bytes;      /* copied or set; 0 for kernels and graphs */
    uint64_t queued;     /* ticks from the time when the driver queued the work to its start; 0 if unknown */
    uint64_t graph_node; /* CUPTI's ID of the node; 0 for none */
    uint32_t kernel;     /* string ID of the mangled name; 0 if unknown */
    uint32_t device, context, stream; /* CUPTI's numbers */
    uint32_t graph;                   /* CUPTI's number of the executable graph; 0 for none */
    uint8_t kind;                     /* enum ct_gpu_work_kind */
    uint8_t copy_kind;                /* of copies: enum ct_transfer_kind */
    uint8_t reserved[2];              /* zero */
};
static_assert(sizeof(struct ct_gpu_work) == 48, "ct_gpu_work");

/* Copies the payload of GPU work. Returns false if the payload is too short or its kind is unknown. */
static inline bool ct_gpu_work_read(const void *payload, size_t bytes, struct ct_gpu_work *work)
{
    if (bytes < sizeof(*work))
        return false;
    memcpy(work, payload, sizeof(*work));
    return work->kind < CT_GPU_WORK_KINDS || work->kind == CT_GPU_DROPPED;
}

/* A device of the process. The UUIDs differ if the GPU is divided (MIG) and the device is an instance. */
struct ct_device {
    uint8_t gpu_uuid[16], own_uuid[16];
    uint32_t pci_domain; /* the GPU's PCI address. Its function is 0 */
    uint8_t pci_bus, pci_slot;
    uint8_t reserved[10]; /* zero */
};
static_assert(sizeof(struct ct_device) == 48, "ct_device");

struct ct_thread_name {
    char name[16]; /* from prctl(PR_GET_NAME), NUL-terminated */
    uint8_t reserved[16];
};
static_assert(sizeof(struct ct_thread_name) == 32, "ct_thread_name");

#endif
