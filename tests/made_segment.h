/* Builds a segment header like the hook's, for tests that run without the hook. */
#ifndef MADE_SEGMENT_H
#define MADE_SEGMENT_H

#include "segment.h"

/* The caller fills in the owner, the anchor, the lanes and the functions. */
static inline struct ct_segment made_segment(uint64_t ring_bytes)
{
    return (struct ct_segment){
        .magic = CT_SEGMENT_MAGIC,
        .version = CT_PROTO_VERSION,
        .header_bytes = sizeof(struct ct_segment),
        .function_slots = CT_FUNCTIONS_MAX,
        .lane_slots = CT_LANES_MAX,
        .lane_offset = CT_LANE_OFFSET,
        .lane_stride = CT_LANE_HEADER_BYTES + CT_CHUNK_BYTES,
        .ring_bytes = ring_bytes,
        .pid = getpid(),
        .clock = CT_CLOCK_MONOTONIC,
        .ready = 1,
    };
}

#endif
