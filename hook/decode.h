/* What the files of decoders share: decode.c and decode_copy.c. */
#ifndef CT_DECODE_H
#define CT_DECODE_H

#include "decoders.h"
#include "role.h"

static inline bool succeeded(const struct ct_frame *frame)
{
    return (ct_status)frame->result == 0;
}

/* Whether the driver came to read its input: with these errors it may have returned before, and a pointer may
 * be anything. */
static inline bool inspected(const struct ct_frame *frame)
{
    enum { NOT_INITIALIZED = 3, DEINITIALIZED = 4, INVALID_CONTEXT = 201, CONTEXT_IS_DESTROYED = 709 };
    const ct_status status = (ct_status)frame->result;
    return status != NOT_INITIALIZED && status != DEINITIALIZED && status != INVALID_CONTEXT &&
           status != CONTEXT_IS_DESTROYED;
}

/* The null stream means the legacy one, or the thread's own in the _ptsz forms: CU_STREAM_PER_THREAD. */
static inline uint64_t stream_of(const struct ct_frame *frame, uint64_t stream)
{
    return stream == 0 && ct_rows[frame->row].flags & CT_ROW_PER_THREAD ? 2 : stream;
}

/* CT_FLAG_CAPTURED when `stream` is being captured, so that the call on it became part of a graph; else 0. */
uint8_t ct_decode_captured(const struct ct_frame *frame, uint64_t stream);
/* The same, and counts the nodes that the call became if it succeeded. */
uint8_t ct_decode_captured_as(const struct ct_frame *frame, uint64_t stream, enum ct_node_kind kind,
                              uint32_t count);

/* A record about one object or two; CT_ROLE_none for a place that is not used. */
static inline void ct_decode_objects(struct ct_decoded *decoded, enum ct_role first_role, uint64_t first,
                                     enum ct_role second_role, uint64_t second)
{
    decoded->kind = CT_KIND_OBJECTS;
    decoded->payload_slots = 1;
    decoded->payload.objects = (struct ct_objects){
        .handle = { first, second },
        .role = { (uint8_t)first_role, (uint8_t)second_role },
    };
}

#endif
