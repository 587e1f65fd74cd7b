/* Records: what a lane carries. Owned by proto/, written by the hook, read by the collector.
 *
 * A record is one or more 16-byte slots. Most calls say little, and take one: struct ct_short. All other
 * records begin with struct ct_record; payload (payload.h), where the kind has one, follows in the next slots
 * without a break (a record never wraps: a CT_KIND_PAD record fills the end of the ring instead). A reader
 * checks `kind` and `slots` of every record before it believes the rest. */
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
    CT_SLOTS_MAX = 510, /* a record's length; a head could say more, up to CT_SLOTS_MASK */
    CT_PAYLOAD_MAX = (CT_SLOTS_MAX - CT_HEAD_SLOTS) * CT_SLOT_BYTES, /* bytes */
    CT_STRING_MAX = CT_PAYLOAD_MAX - 1,                              /* bytes of a string definition, 8127 */
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

/* The first word of a record: from the lowest bit on the index into the segment's function directory, enum
 * ct_kind, and the length in slots with payload, 1 to CT_SLOTS_MAX. A call or pad of one slot is a struct
 * ct_short. */
enum { CT_FUNCTION_BITS = 16, CT_KIND_BITS = 6, CT_SLOTS_BITS = 10 };
#define CT_KIND_MASK  ((1U << CT_KIND_BITS) - 1)
#define CT_SLOTS_MASK ((1U << CT_SLOTS_BITS) - 1)

struct ct_record {
    uint32_t function : CT_FUNCTION_BITS, kind : CT_KIND_BITS, slots : CT_SLOTS_BITS;
    int32_t status; /* what the call returned: CUresult for the driver layer */
    uint64_t end;   /* clock ticks at return, see proto/clock.h */
    uint64_t span;  /* bits 0-55 duration in ticks, 56-59 depth (15 and deeper are 15), 60-63 flags */
    uint64_t value; /* by kind */
};
static_assert(sizeof(struct ct_record) == CT_HEAD_SLOTS * CT_SLOT_BYTES, "ct_record");

/* A CT_KIND_CALL without flags and of value 0; or a CT_KIND_PAD, of which `head` alone counts. */
struct ct_short {
    uint32_t head; /* ct_head() */
    uint32_t span; /* bits 0-17 duration in ticks, 18-27 status, 28-31 depth */
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

/* The head of a struct ct_record, made in a register. */
static inline uint32_t ct_head(uint32_t function, enum ct_kind kind, uint32_t slots)
{
    return function | (uint32_t)kind << CT_FUNCTION_BITS | slots << (CT_FUNCTION_BITS + CT_KIND_BITS);
}

enum { CT_SHORT_TICKS_BITS = 18, CT_SHORT_STATUS_BITS = 10 };

/* True if a call without flags and of value 0 has a place in a struct ct_short. 2^18 ticks are 75 us at
 * 3.5 GHz and 262 us at 1 GHz. */
static inline bool ct_short_fits(uint64_t ticks, int32_t status)
{
    return (ticks >> CT_SHORT_TICKS_BITS | (uint32_t)status >> CT_SHORT_STATUS_BITS) == 0;
}
static inline uint32_t ct_short_span(uint64_t ticks, int32_t status, uint32_t depth)
{
    const uint32_t d = depth < CT_SPAN_DEPTH_MAX ? depth : CT_SPAN_DEPTH_MAX;
    return (uint32_t)ticks | (uint32_t)status << CT_SHORT_TICKS_BITS | d << 28;
}

/* Gives a record as many slots as it takes with a payload of so many bytes, at most CT_PAYLOAD_MAX. */
static inline void ct_record_measure(struct ct_record *record, size_t payload_bytes)
{
    const bool is_short = record->kind == CT_KIND_CALL && payload_bytes == 0 && record->value == 0 &&
                          ct_span_flags(record->span) == 0 &&
                          ct_short_fits(ct_span_ticks(record->span), record->status);
    const size_t slots = CT_HEAD_SLOTS + (payload_bytes + CT_SLOT_BYTES - 1) / CT_SLOT_BYTES;
    record->slots = is_short ? 1 : slots & CT_SLOTS_MASK;
}

/* Writes a record without its payload: `slots` slots of it, CT_HEAD_SLOTS at most. */
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

/* Reads what every record begins with, of its first slot: function, kind, slots. The rest is 0. */
static inline struct ct_record ct_record_head(const void *from)
{
    struct ct_record record = { .kind = CT_KIND_PAD };
    memcpy(&record, from, sizeof(uint32_t));
    return record;
}

/* Reads a record without its payload: `slots` slots of it, CT_HEAD_SLOTS at most. */
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

/* Ticks at entry. 2^56 ticks are 278 days at 3 GHz, 834 at 1 GHz: no call is longer. A counter that began
 * anew meanwhile (suspend) ends a call before it began; the difference then tells the start as long as that
 * was below 2^56. */
static inline uint64_t ct_record_start(const struct ct_record *record)
{
    const uint64_t ticks = ct_span_ticks(record->span);
    return ticks <= record->end ? record->end - ticks : (record->end - ticks) & CT_SPAN_TICKS_MAX;
}

/* Returns whether a status is a failure. "Not ready" (600), of driver and runtime, is an answer. */
static inline bool ct_status_is_failure(int32_t status)
{
    return status != 0 && status != 600;
}

#endif
