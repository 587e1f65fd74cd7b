/* Shared by decoders. A decoder runs after the real call, on the application's thread: what the driver wrote
 * is read when the call succeeded, what it read when it came to read it. Structures of the driver are
 * declared as far as they are read, from cuda.h 13.0. */
#ifndef CT_DECODE_H
#define CT_DECODE_H

#include "decoded.h"
#include "names.h"
#include "target_access.h"

static inline bool succeeded(const struct ct_frame *frame)
{
    return (ct_status)frame->result == 0;
}

/* True if the driver came to read its input: with these errors it may have returned before, and a pointer may
 * be anything. */
static inline bool inspected(const struct ct_frame *frame)
{
    enum { NOT_INITIALIZED = 3, DEINITIALIZED = 4, INVALID_CONTEXT = 201, CONTEXT_IS_DESTROYED = 709 };
    const ct_status status = (ct_status)frame->result;
    return status != NOT_INITIALIZED && status != DEINITIALIZED && status != INVALID_CONTEXT &&
           status != CONTEXT_IS_DESTROYED;
}

/* Reads memory that an argument points to. The driver has read or written it there. Returns false if the
 * argument is NULL or the call failed. */
static inline bool out_bytes(const struct ct_frame *frame, unsigned argument, void *to, size_t bytes)
{
    const uint64_t pointer = ct_argument(frame, argument);
    return succeeded(frame) && pointer && ct_target_read(pointer, to, bytes);
}

/* The same for a handle or an address, 0 for none. */
static inline uint64_t out(const struct ct_frame *frame, unsigned argument)
{
    uint64_t handle;
    return out_bytes(frame, argument, &handle, sizeof(handle)) ? handle : 0;
}

/* The same for a structure that the driver only reads: it may have read it in a call that failed, too. */
static inline bool in_bytes(const struct ct_frame *frame, unsigned argument, void *to, size_t bytes)
{
    const uint64_t pointer = ct_argument(frame, argument);
    return pointer && inspected(frame) && ct_target_read(pointer, to, bytes);
}

/* Returns when the call began, for what its end takes back. Nothing that was learned since is its own. */
static inline uint64_t began(const struct ct_frame *frame)
{
    return frame->producer ? frame->start : UINT64_MAX;
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

/* Adds what the call was about, as long as there is a place for it; nothing for CT_ROLE_none. */
void ct_decode_add_object(struct ct_decoded *decoded, enum ct_role role, uint64_t handle);

/* Memory got or given back; address 0 for none, as after a failure. */
void ct_decode_allocated(struct ct_decoded *decoded, enum ct_alloc_kind kind, uint64_t address,
                         uint64_t bytes);
void ct_decode_freed(const struct ct_frame *frame, struct ct_decoded *decoded, enum ct_alloc_kind kind,
                     uint64_t address, uint64_t bytes);

/* Decoders that do no more. */
#define ALLOCATED(name, kind, address, bytes)                                                                \
    void ct_decode_##name(const struct ct_frame *frame, struct ct_decoded *decoded)                          \
    {                                                                                                        \
        ct_decode_allocated(decoded, kind, address, bytes);                                                  \
    }
#define FREED(name, kind, address, bytes)                                                                    \
    void ct_decode_##name(const struct ct_frame *frame, struct ct_decoded *decoded)                          \
    {                                                                                                        \
        ct_decode_freed(frame, decoded, kind, address, bytes);                                               \
    }

/* Bytes of an element of an array that was created here, 0 when they cannot be told. In decode_memory.c. */
uint64_t ct_array_element_bytes(uint64_t array);

#endif
