/* Records are the contents of a lane, written by the hook and read by the collector.
 *
 * A record consists of one or more 16-byte slots. Most calls take a single slot, which is a struct ct_short.
 * All other records begin with a struct ct_record. The payload (payload.h), if the kind has one, is in the
 * slots that directly follow. A record never wraps around: if it does not fit at the end of the ring, a
 * CT_KIND_PAD record fills the remaining slots. A reader checks `kind` and `slots` of every record before it
 * uses the other fields. */
#ifndef CT_PROTO_RECORD_H
#define CT_PROTO_RECORD_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    CT_SLOT_BYTES = 16,
    CT_HEAD_SLOTS = 2,  /* of struct ct_record */
    CT_SLOTS_MAX = 510, /* maximum length of a record; the field in a record's head could hold up to
                         * CT_SLOTS_MASK */
    CT_PAYLOAD_MAX = (CT_SLOTS_MAX - CT_HEAD_SLOTS) * CT_SLOT_BYTES, /* bytes */
    CT_STRING_MAX = CT_PAYLOAD_MAX - 1,                              /* maximum size of a string definition:
                                                                      * 8127 bytes */
};

/* A record's kind, which determines the type of its payload and the meaning of `value`. */
enum ct_kind {
    CT_KIND_PAD = 0,      /* skip `slots` slots */
    CT_KIND_CALL = 1,     /* a call that has returned; value: see CT_FLAG_BYTES */
    CT_KIND_LAUNCH = 2,   /* a call; value: stream; struct ct_launch */
    CT_KIND_TRANSFER = 3, /* a call; value: bytes; struct ct_transfer */
    CT_KIND_ALLOC = 4,    /* a call; value: bytes; struct ct_alloc; see CT_FLAG_FREE */
    CT_KIND_GRAPH = 5,    /* a call; value: stream; struct ct_graph_launch */
    CT_KIND_STRING = 6,   /* defines string number `value`; payload: NUL-terminated bytes */
    CT_KIND_THREAD = 7,   /* the lane now belongs to thread `value`; struct ct_thread_name */
    CT_KIND_OBJECTS = 8,  /* a call; value: see CT_FLAG_BYTES; struct ct_objects */
    CT_KIND_RANGE = 9,    /* an NVTX range or mark; value: its payload; struct ct_range and texts */
    CT_KIND_NODES = 10,   /* a call that created an executable graph; value: the graph; struct
                           * ct_graph_nodes */
    CT_KIND_NAME = 11,    /* names an object from now on; value: its handle; struct ct_object_name and text */
    CT_KIND_FIELDS = 12,  /* a call; value: 0; struct ct_fields, names and texts */
    CT_KIND_GPU_WORK = 13,    /* work that the GPU has done; value: its correlation; struct ct_gpu_work */
    CT_KIND_CORRELATION = 14, /* the lane's previous call has the correlation `value` */
    CT_KIND_DEVICE = 15,      /* describes a device of the process; value: CUDA's number; struct ct_device */
    CT_KIND_COUNT
};

/* True if a record represents a call or a range. Records of other kinds only describe calls and ranges. */
static inline int ct_kind_is_call(unsigned kind)
{
    return kind != CT_KIND_PAD && kind != CT_KIND_STRING && kind != CT_KIND_THREAD && kind != CT_KIND_NAME &&
           kind != CT_KIND_GPU_WORK && kind != CT_KIND_CORRELATION && kind != CT_KIND_DEVICE;
}

/* Bits 60 to 63 of ct_record.span. */
enum {
    CT_FLAG_BYTES = 1,    /* CT_KIND_CALL, CT_KIND_OBJECTS: value is a number of bytes */
    CT_FLAG_FREE = 2,     /* CT_KIND_ALLOC: memory was freed; value: bytes, or 0 if unknown */
    CT_FLAG_CAPTURED = 4, /* the call was captured into a graph; nothing ran on the GPU */
    /* CT_KIND_ALLOC: the number of bytes is unknown. CT_KIND_GRAPH: the number of kernels is unknown.
     * CT_KIND_NODES: there may be nodes that are not counted. */
    CT_FLAG_UNKNOWN = 8,
    CT_FLAG_SIZE =
        8, /* CT_KIND_OBJECTS with CT_FLAG_BYTES: value is the size of the second object's memory */
};

/* True if a call's `value` is the number of bytes that it moved, set, allocated or requested. */
static inline int ct_kind_has_bytes(unsigned kind, unsigned flags)
{
    if (kind == CT_KIND_ALLOC)
        return !(flags & (CT_FLAG_FREE | CT_FLAG_UNKNOWN));
    return kind == CT_KIND_TRANSFER ||
           ((kind == CT_KIND_CALL || kind == CT_KIND_OBJECTS) && flags & CT_FLAG_BYTES);
}

/* The layout of a record's first word. From the lowest bit upwards, the word contains the index into the
 * function directory, the enum ct_kind, and the length in slots, including the payload (1 to CT_SLOTS_MAX). A
 * call or pad of one slot is a struct ct_short. */
enum { CT_FUNCTION_BITS = 16, CT_KIND_BITS = 6, CT_SLOTS_BITS = 10 };
#define CT_KIND_MASK  ((1U << CT_KIND_BITS) - 1)
#define CT_SLOTS_MASK ((1U << CT_SLOTS_BITS) - 1)

struct ct_record {
    uint32_t function : CT_FUNCTION_BITS, kind : CT_KIND_BITS, slots : CT_SLOTS_BITS;
    int32_t status; /* the call's result: CUresult for the driver layer */
    uint64_t end;   /* clock ticks at return; see proto/clock.h */
    uint64_t span;  /* bits 0-55: duration in ticks; 56-59: depth, 15 at most; 60-63: flags */
    uint64_t value; /* depends on the kind */
};
static_assert(sizeof(struct ct_record) == CT_HEAD_SLOTS * CT_SLOT_BYTES, "ct_record");

/* A CT_KIND_CALL record with no flags and a value of 0, or a CT_KIND_PAD record, which uses only `head`. */
struct ct_short {
    uint32_t head; /* ct_head() */
    uint32_t span; /* bits 0-17: duration in ticks; 18-27: status; 28-31: depth */
    uint64_t end;
};
static_assert(sizeof(struct ct_short) == CT_SLOT_BYTES, "ct_short");

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

/* Builds the head of a record in a register. */
static inline uint32_t ct_head(uint32_t function, enum ct_kind kind, uint32_t slots)
{
    return function | (uint32_t)kind << CT_FUNCTION_BITS | slots << (CT_FUNCTION_BITS + CT_KIND_BITS);
}

enum { CT_SHORT_TICKS_BITS = 18, CT_SHORT_STATUS_BITS = 10 };

/* True if a call with no flags and a value of 0 fits in a struct ct_short. A duration of 2^18 ticks is 75 us
 * at 3.5 GHz and 262 us at 1 GHz. */
static inline bool ct_short_fits(uint64_t ticks, int32_t status)
{
    return (ticks >> CT_SHORT_TICKS_BITS | (uint32_t)status >> CT_SHORT_STATUS_BITS) == 0;
}
static inline uint32_t ct_short_span(uint64_t ticks, int32_t status, uint32_t depth)
{
    const uint32_t d = depth < CT_SPAN_DEPTH_MAX ? depth : CT_SPAN_DEPTH_MAX;
    return (uint32_t)ticks | (uint32_t)status << CT_SHORT_TICKS_BITS | d << 28;
}

/* Sets a record's `slots` for a payload of `payload_bytes` bytes (at most CT_PAYLOAD_MAX). */
static inline void ct_record_measure(struct ct_record *record, size_t payload_bytes)
{
    const bool is_short = record->kind == CT_KIND_CALL && payload_bytes == 0 && record->value == 0 &&
                          ct_span_flags(record->span) == 0 &&
                          ct_short_fits(ct_span_ticks(record->span), record->status);
    const size_t slots = CT_HEAD_SLOTS + (payload_bytes + CT_SLOT_BYTES - 1) / CT_SLOT_BYTES;
    record->slots = is_short ? 1 : slots & CT_SLOTS_MASK;
}

/* Writes the part of a record before its payload, which takes one slot or CT_HEAD_SLOTS slots. */
static inline void ct_record_put(void *to, const struct ct_record *record)
{
    if (record->slots > 1) {
        memcpy(to, record, sizeof(*record));
        return;
    }
    const struct ct_short brief = {
        .head = ct_head(record->function, (enum ct_kind)record->kind, record->slots),
        .span = ct_short_span(ct_span_ticks(record->span), record->status, ct_span_depth(record->span)),
        .end = record->end,
    };
    memcpy(to, &brief, sizeof(brief));
}

/* Reads the function, kind and slots of a record from its first slot. The other fields of the result are
 * 0. */
static inline struct ct_record ct_record_head(const void *from)
{
    struct ct_record record = { .kind = CT_KIND_PAD };
    memcpy(&record, from, sizeof(uint32_t));
    return record;
}

/* Reads the part of a record before its payload, which takes one slot or CT_HEAD_SLOTS slots. */
static inline struct ct_record ct_record_get(const void *from)
{
    struct ct_record record = ct_record_head(from);
    if (record.slots > 1) {
        memcpy(&record, from, sizeof(record));
        return record;
    }
    struct ct_short brief;
    memcpy(&brief, from, sizeof(brief));
    record.status = brief.span >> CT_SHORT_TICKS_BITS & ((1U << CT_SHORT_STATUS_BITS) - 1);
    record.end = brief.end;
    record.span = ct_span(brief.span & ((1U << CT_SHORT_TICKS_BITS) - 1), brief.span >> 28, 0);
    return record;
}

/* Returns the tick at which the call began. No call takes longer than 2^56 ticks, which is 278 days at 3 GHz
 * and 834 days at 1 GHz. If the counter restarted during the call (suspend), the call seems to end before it
 * began. Even then, the result is correct if the call began before tick 2^56. */
static inline uint64_t ct_record_start(const struct ct_record *record)
{
    const uint64_t ticks = ct_span_ticks(record->span);
    return ticks <= record->end ? record->end - ticks : (record->end - ticks) & CT_SPAN_TICKS_MAX;
}

/* True if a status is a failure. "Not ready" (600), which the driver and the runtime return, is not a
 * failure. */
static inline bool ct_status_is_failure(int32_t status)
{
    return status != 0 && status != 600;
}

#endif
