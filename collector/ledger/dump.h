/* The format of a recording: all that the ledger was told, in the order in which it was, one frame for each
 * batch that was committed. What it names by number (processes, segments, threads, functions) has the number
 * that the recorded trace gave it, and is explained before it is named. Times are CLOCK_MONOTONIC nanoseconds
 * of the recorded boot. Little-endian; payloads are those of proto/record.h in the version that the header
 * says.
 *
 *   struct ct_dump_header
 *   struct ct_dump_frame, then its events: struct ct_dump_event, body and texts, up to a multiple of 8 bytes
 *   … */
#ifndef CT_DUMP_H
#define CT_DUMP_H

#include "origin.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define CT_DUMP_MAGIC UINT64_C(0x3143455254445543) /* the bytes "CUDTREC1" */

enum {
    CT_DUMP_VERSION = 1,              /* any change to this file counts it up */
    CT_DUMP_FRAME_MAGIC = 0x4d415246, /* the bytes "FRAM" */
    CT_DUMP_FRAME_MAX = 1024 * 1024 * 1024,
    CT_DUMP_EVENT_MAX = 16 * 1024,
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
    uint64_t bytes;    /* length of the events, CT_DUMP_FRAME_MAX at most */
    uint64_t hash;     /* ct_dump_hash() of them */
    uint64_t until_ns; /* no call of a later frame returned before, but late ones */
};

enum ct_dump_type {
    CT_DUMP_PROCESS,  /* texts: exe, cmdline, name of the segment */
    CT_DUMP_FUNCTION, /* texts: layer, name, category */
    CT_DUMP_THREAD,   /* text: name */
    CT_DUMP_NOTE,     /* a payload */
    CT_DUMP_CALL,     /* a payload */
    CT_DUMP_LANE,
    CT_DUMP_LOSS,
    CT_DUMP_UNSENT,
    CT_DUMP_NOTHING_OPEN,
    CT_DUMP_OPEN,
    CT_DUMP_END,  /* text: state */
    CT_DUMP_META, /* text: key */
    CT_DUMP_TYPES
};

struct ct_dump_event {
    uint16_t type;       /* enum ct_dump_type */
    uint16_t tail_bytes; /* length of the payload, or of the texts, each with its NUL */
    uint32_t bytes;      /* length of all behind this, padding too: CT_DUMP_EVENT_MAX at most */
};

struct ct_dump_process {
    int64_t process_id, segment_id;
    uint64_t start_ticks, image_ns, started_ns, absent_ns;
    int64_t changed_ns;
    int32_t pid;
    uint32_t uid;
};
struct ct_dump_function {
    int64_t function_id;
};
struct ct_dump_thread {
    int64_t segment_id, thread_id;
    uint64_t tid;
};
/* A note's thread may have no number yet: the segment's. */
struct ct_dump_call {
    int64_t segment_id, thread_id, function_id;
    uint64_t end_ns, duration_ns, value;
    int32_t status;
    uint8_t kind, depth, flags, reserved;
};
struct ct_dump_lane {
    int64_t segment_id, thread_id; /* 0: none yet */
    uint64_t lane, position;
};
struct ct_dump_loss {
    int64_t segment_id;
    uint32_t lane, tenancy, tid, cause;
    uint64_t calls, first_ns, last_ns;
};
struct ct_dump_unsent {
    int64_t segment_id, function_id;
    uint64_t entry, lost, lost_ns, lost_bytes, skipped, skipped_ns, skipped_bytes;
};
struct ct_dump_open {
    int64_t segment_id, thread_id, function_id; /* the last two are 0 of CT_DUMP_NOTHING_OPEN */
    uint64_t depth, start_ns;
};
struct ct_dump_end {
    int64_t process_id;
    uint64_t ended_ns;
};
struct ct_dump_meta {
    int64_t value;
};

/* FNV-1a by words; `bytes` is a multiple of 8. Tells damage, and no forgery. */
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
