/* A call in progress, with its arguments and, once the call has returned, its result. */
#ifndef CT_FRAME_H
#define CT_FRAME_H

#include "machine.h"
#include "producer.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t ct_status; /* CUresult */

/* A frame is on the application's stack. The trampoline depends on the offsets of its fields. */
struct ct_frame {
    uint64_t args[CT_REGISTER_ARGS];
    const uint64_t *stack_args; /* the words that the caller passed on its stack */
    uint64_t start;             /* ticks at entry; valid only if `producer` is set */
    struct ct_producer *producer;
    uint32_t row;
    uint32_t depth;
    uint64_t result;   /* value of the return register after the real function has returned */
    uint64_t indirect; /* aarch64: x8, the address for a result that does not fit in registers */
};
#define CT_FRAME_REST (8 * CT_REGISTER_ARGS)
static_assert(sizeof(struct ct_frame) == CT_FRAME_REST + 48, "trampoline");
static_assert(sizeof(struct ct_frame) % 16 == 0, "the trampoline keeps the stack aligned");
static_assert(offsetof(struct ct_frame, stack_args) == CT_FRAME_REST, "trampoline");
static_assert(offsetof(struct ct_frame, row) == CT_FRAME_REST + 24, "trampoline");
static_assert(offsetof(struct ct_frame, result) == CT_FRAME_REST + 32, "trampoline");
static_assert(offsetof(struct ct_frame, indirect) == CT_FRAME_REST + 40, "trampoline");

/* Returns argument `i`. Counting starts at 0 and includes integers, pointers and structs of up to 8 bytes,
 * but not floats, which are passed in separate registers. A larger struct passed by value counts on aarch64,
 * where it is really passed by reference, but not on x86-64. At least the first six arguments are in
 * `frame->args`. If an argument is narrower than 64 bits, the upper bits of its word are undefined. On the
 * stack, each argument takes 8 bytes on both architectures. */
static inline uint64_t ct_argument(const struct ct_frame *frame, unsigned int i)
{
    return i < CT_REGISTER_ARGS ? frame->args[i] : frame->stack_args[i - CT_REGISTER_ARGS];
}

/* Returns a call's address on its thread's stack. The address does not depend on the call's path through the
 * hook. On x86-64, it is the location of the return address. */
static inline uintptr_t ct_frame_address(const struct ct_frame *frame)
{
    return (uintptr_t)frame->stack_args - 8;
}

#endif
