/* Helpers for decoders. A decoder runs after the real call (in the hook, on the application's thread). It
 * reads the driver's output only if the call succeeded, and the driver's input only if the driver has read
 * it. The driver's structures are from cuda.h 13.0. Only the parts of a structure that decoders read are
 * declared. */
#ifndef CT_DECODE_H
#define CT_DECODE_H

#include "decoded.h"
#include "names.h"
#include "target_access.h"

static inline bool succeeded(const struct ct_frame *frame)
{
    return (ct_status)frame->result == 0;
}

/* True if the driver has certainly read its input. The driver may return the errors below without having read
 * its input, so the pointers may be invalid. */
static inline bool inspected(const struct ct_frame *frame)
{
    enum { NOT_INITIALIZED = 3, DEINITIALIZED = 4, INVALID_CONTEXT = 201, CONTEXT_IS_DESTROYED = 709 };
    const ct_status status = (ct_status)frame->result;
    return status != NOT_INITIALIZED && status != DEINITIALIZED && status != INVALID_CONTEXT &&
           status != CONTEXT_IS_DESTROYED;
}

/* Reads memory that an argument points to, and that the driver has read or written. Returns false if the
 * argument is NULL or the call failed. */
static inline bool out_bytes(const struct ct_frame *frame, unsigned argument, void *to, size_t bytes)
{
    const uint64_t pointer = ct_argument(frame, argument);
    return succeeded(frame) && pointer && ct_target_read(pointer, to, bytes);
}

/* Like out_bytes(), but returns a handle or an address, or 0 if there is none. */
static inline uint64_t out(const struct ct_frame *frame, unsigned argument)
{
    uint64_t handle;
    return out_bytes(frame, argument, &handle, sizeof(handle)) ? handle : 0;
}

/* Like out_bytes(), for a structure that the driver only reads. The driver may have read the structure even
 * if the call failed. */
static inline bool in_bytes(const struct ct_frame *frame, unsigned argument, void *to, size_t bytes)
{
    const uint64_t pointer = ct_argument(frame, argument);
    return pointer && inspected(frame) && ct_target_read(pointer, to, bytes);
}

/* Returns the time when the call began, or UINT64_MAX while nothing is recorded. A call that destroys an
 * object must not remove facts learned after it began, since the driver may have given the same handle to
 * another thread. */
static inline uint64_t began(const struct ct_frame *frame)
{
    return frame->producer ? frame->start : UINT64_MAX;
}

/* Replaces the null stream with CU_STREAM_PER_THREAD for _ptsz functions. For all other functions, the null
 * stream is the legacy stream. */
static inline uint64_t stream_of(const struct ct_frame *frame, uint64_t stream)
{
    return stream == 0 && ct_rows[frame->row].flags & CT_ROW_PER_THREAD ? 2 : stream;
}

/* Returns CT_FLAG_CAPTURED if `stream` is being captured, which makes the call part of a graph, and 0
 * otherwise. */
uint8_t ct_decode_captured(const struct ct_frame *frame, uint64_t stream);
/* Like ct_decode_captured(), but also counts the graph nodes that the call became if it succeeded. */
uint8_t ct_decode_captured_as(const struct ct_frame *frame, uint64_t stream, enum ct_node_kind kind,
                              uint32_t count);

/* Adds an object to the call if there is room for it. Ignores CT_ROLE_none. */
void ct_decode_add_object(struct ct_decoded *decoded, enum ct_role role, uint64_t handle);

/* Describe the call as an allocation or a release. `address` is 0 if there is none, for example because the
 * call failed. */
void ct_decode_allocated(struct ct_decoded *decoded, enum ct_alloc_kind kind, uint64_t address,
                         uint64_t bytes);
void ct_decode_freed(const struct ct_frame *frame, struct ct_decoded *decoded, enum ct_alloc_kind kind,
                     uint64_t address, uint64_t bytes);

/* Define decoders that only call ct_decode_allocated() or ct_decode_freed(). */
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

/* Returns the size of an array's elements in bytes, or 0 if the hook does not know the array. Defined in
 * decode_memory.c. */
uint64_t ct_array_element_bytes(uint64_t array);

#endif
