/* The format of a recording: everything passed to the ledger, in the original order, one frame per committed
 * batch. Processes, segments, threads and functions keep the IDs that they have in the recorded trace. Each
 * ID is defined before it is used. Times are CLOCK_MONOTONIC nanoseconds of the recorded boot. Everything is
 * little-endian. Payloads have the format of proto/record.h, in the version that the header names.
 *
 *   struct ct_dump_header
 *   struct ct_dump_frame, then its events: struct ct_dump_event, body and texts, up to a multiple of 8 bytes
 *   … */
#ifndef CT_DUMP_H
#define CT_DUMP_H

#include "origin.h"
#include "process_rows.h"

#include <assert.h>
#include <stddef.h>

/* No time or position in a recording exceeds this limit. */
#define CT_DUMP_MOMENT_MAX (UINT64_C(1) << 62)
#define CT_DUMP_MAGIC      UINT64_C(0x3143455254445543) /* the bytes "CUDTREC1" */

enum {
    CT_DUMP_VERSION = 6,              /* raised by any change to this file, dump.def or the structs of
                                       * facts */
    CT_DUMP_FRAME_MAGIC = 0x4d415246, /* the bytes "FRAM" */
    CT_DUMP_FRAME_MAX = 1024 * 1024 * 1024,
    CT_DUMP_STRING_MAX = 65000, /* maximum size of a kernel's name, demangled or not, with its NUL */
    CT_DUMP_EVENT_MAX = 64 * 1024,
};

struct ct_dump_header {
    uint64_t magic;
    uint32_t version;        /* CT_DUMP_VERSION */
    uint32_t record_version; /* CT_PROTO_VERSION */
    struct ct_origin origin;
};
static_assert(sizeof(struct ct_dump_header) == 400, "ct_dump_header");

struct ct_dump_frame {
    uint32_t magic;
    uint32_t reserved;
    uint64_t bytes;    /* length of the events, at most CT_DUMP_FRAME_MAX */
    uint64_t hash;     /* ct_dump_hash() of the events */
    uint64_t until_ns; /* no call in a later frame returned before this time, except late calls */
};

enum ct_dump_type {
#define EVENT(type, body, texts) CT_DUMP_##type,
#include "dump.def"
#undef EVENT
    CT_DUMP_TYPES
};

struct ct_dump_event {
    uint16_t type;       /* enum ct_dump_type */
    uint16_t tail_bytes; /* length of the payload, or of the texts with their NULs */
    uint32_t bytes;      /* length of body, tail and padding, at most CT_DUMP_EVENT_MAX */
};

struct ct_dump_process {
    int64_t process_id, segment_id;
    struct ct_process_numbers is;
};
static_assert(sizeof(struct ct_dump_process) == 64, "ct_dump_process");
struct ct_dump_function {
    int64_t function_id;
};
struct ct_dump_thread {
    int64_t segment_id, thread_id;
    uint64_t tid;
};
/* A note whose thread has no ID yet applies to the segment. */
struct ct_dump_call {
    int64_t segment_id, thread_id, function_id;
    uint64_t end_ns, duration_ns, value;
    int32_t status;
    uint8_t kind, depth, flags, reserved;
};
static_assert(sizeof(struct ct_loss_facts) == 48, "ct_loss_facts");
static_assert(sizeof(struct ct_unsent_facts) == 72, "ct_unsent_facts");
static_assert(sizeof(struct ct_gpu_sample_facts) == 184, "ct_gpu_sample_facts");

/* The body of an event, which follows the event's head. For each type, ct_dump_shapes holds the length of the
 * body and the number of strings. */
union ct_dump_body {
    struct ct_dump_process process;
    struct ct_dump_function function;
    struct ct_dump_thread thread;
    struct ct_dump_call call;
    struct ct_lane_facts lane;
    struct ct_loss_facts loss;
    struct ct_unsent_facts unsent;
    struct ct_open_facts open;
    struct ct_recording_facts recording;
    struct ct_end_facts end;
    struct ct_meta_facts meta;
    struct ct_gpu_facts gpu;
    struct ct_gpu_sample_facts gpu_sample;
    struct ct_gpu_process_facts gpu_process;
    struct ct_unrecorded_facts unrecorded;
};
static const struct {
    uint8_t body_bytes, texts;
} ct_dump_shapes[CT_DUMP_TYPES] = {
#define EVENT(type, body, texts) { sizeof(((union ct_dump_body *)NULL)->body), texts },
#include "dump.def"
#undef EVENT
};

/* FNV-1a over words; `bytes` is a multiple of 8. Detects damage, not forgery. */
static inline uint64_t ct_dump_hash(const void *events, size_t bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word;
        __builtin_memcpy(&word, (const uint8_t *)events + i, 8);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    return hash;
}

#endif
