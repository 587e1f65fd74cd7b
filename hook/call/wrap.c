/* The hot path of most calls on x86-64. Each wrapper handles a whole call in a single function, so that the
 * compiler can keep values in registers that the general path (trampoline, ct_enter(), ct_leave()) stores in
 * a frame. The code for a call is kept short and contiguous, because the program evicts it from the L1 cache
 * between calls.
 *
 * The trampoline (trampoline_x86_64.S) jumps here only if the thread has a lane and fewer than CT_OPEN_MAX
 * open calls, and the function has a function number. A wrapper forwards only the arguments that it declares.
 * It therefore serves only functions whose stubs name it: launches, and plain functions with few arguments,
 * none of which is in a vector register. In rare cases, it builds a frame after the real function has
 * returned, and takes the slow path.
 *
 * As in entry.c, the code uses no vector registers, takes no locks, makes no system calls and allocates no
 * memory. wrap_clock.c compiles this file again for lanes whose ticks are not the counter's. */
#ifndef CT_HOT_IS_COUNTER
#define CT_HOT_IS_COUNTER(self) true
#endif
#include "gpu_gate.h"
#include "graphs.h"
#include "hot_count.h"
#include "hot_record.h"
#include "kernel_names.h"
#include "wrapper.h"

static inline __attribute__((always_inline)) struct entered_call
enter(const struct ct_row *row, struct ct_producer *self, uintptr_t place)
{
    CT_TEST_POINT("wrap.begun");
    uint32_t depth = ct_depth_around(self, place);
    /* Keep the compiler from emitting a separate path for outermost calls, which would need more
     * registers. */
    __asm__("" : "+r"(depth));
    /* The trampoline has checked the depth, but a signal handler may since have opened ranges and left them
     * open. */
    depth %= CT_OPEN_MAX;
    ct_depth_put(self, depth, place);
    const uint64_t start = ct_hot_now(self);
    CT_TEST_POINT("wrap.clock_read");
    ct_lane_enter(self->lane, depth, atomic_load_explicit(&row->enter_id, memory_order_acquire), start);
    CT_TEST_POINT("wrap.entered");
    return (struct entered_call){ start, depth };
}

/* The gate does not hold functions without a decoder, so the other wrappers call enter(). */
static inline __attribute__((always_inline)) struct entered_call
enter_launch(const struct ct_row *row, struct ct_producer *self, uintptr_t place)
{
    const struct entered_call call = enter(row, self, place);
    if (CT_UNLIKELY(!ct_gpu_gate_is_open()))
        ct_gpu_gate_wait(row, self);
    return call;
}

/* Builds the frame that the trampoline would have built. */
static __attribute__((noinline, cold)) word leave_slow(const struct ct_row *row, struct ct_producer *self,
                                                       struct entered_call call, word result,
                                                       const word *args, const word *stack_args)
{
    struct ct_frame frame = {
        .stack_args = stack_args,
        .start = call.start,
        .producer = self,
        .row = (uint32_t)(row - ct_rows),
        .depth = call.depth,
        .result = result,
    };
    CT_TEST_POINT("wrap.slow");
    for (uint32_t i = 0; args && i < CT_REGISTER_ARGS; i++)
        frame.args[i] = args[i];
    ct_leave_slow(&frame);
    return frame.result;
}

/* Counts a call that has no decoder and is not recorded, whatever the reason. */
static __attribute__((noinline)) word leave_counted(const struct ct_row *row, struct ct_producer *self,
                                                    struct entered_call call, word result, uint16_t id)
{
    if (CT_LIKELY(count_plain(row, self, id, call, result)))
        return result;
    return leave_slow(row, self, call, result, NULL, NULL);
}

/* Ends a call without a decoder. */
static inline __attribute__((always_inline)) word
leave_plain(const struct ct_row *row, struct ct_producer *self, const struct entered_call *call, word result)
{
    const uint16_t id = atomic_load_explicit(&row->leave_id, memory_order_relaxed);
    CT_TEST_POINT("wrap.returned");
    if (CT_LIKELY(write_plain(self, id, call, result)))
        return result;
    return leave_counted(row, self, *call, result, id);
}

word CT_WRAP(plain)(word a, word b, word c, word d, word e, word f)
{
    FOUND_BY_TRAMPOLINE(row, self, place);
    const struct entered_call call = enter(row, self, place);
    typedef word function(word, word, word, word, word, word);
    const word result = ((function *)(uintptr_t)row->real)(a, b, c, d, e, f);
    return leave_plain(row, self, &call, result);
}

/* Wraps a function with two arguments on the stack, such as cudaLaunchKernel. */
word CT_WRAP(plain_2)(word a, word b, word c, word d, word e, word f)
{
    FOUND_BY_TRAMPOLINE(row, self, place);
    const word *const stack = stack_words(place);
    const struct entered_call call = enter(row, self, place);
    typedef word function(word, word, word, word, word, word, word, word);
    const word result = ((function *)(uintptr_t)row->real)(a, b, c, d, e, f, stack[0], stack[1]);
    return leave_plain(row, self, &call, result);
}

/* A struct ct_launch as four words. The kernel, in the lower half of the first word, is filled in later. The
 * words are assembled in 64-bit registers, because a load that spans two smaller stores must wait for
 * both. */
struct launch_words {
    word kernel_grid_x, grid_yz, block_xy, block_z_shared;
};
static_assert(sizeof(struct launch_words) == sizeof(struct ct_launch) &&
                  offsetof(struct ct_launch, grid) == 4 && offsetof(struct ct_launch, block) == 16 &&
                  offsetof(struct ct_launch, shared_bytes) == 28,
              "launch_words");

enum { LAUNCH_SLOTS = CT_HEAD_SLOTS + sizeof(struct ct_launch) / CT_SLOT_BYTES };

static inline word pair(word lower, word upper)
{
    return (uint32_t)lower | upper << 32;
}

/* Writes the record of a launch that succeeded and was not captured, if the same kernel was launched in this
 * lane before. Counts the call if the ring is full. Returns false if it did nothing. */
static inline __attribute__((always_inline)) bool
leave_launch(const struct ct_row *row, struct ct_producer *self, const struct entered_call *call, word result,
             word function, word stream, const struct launch_words *launch)
{
    const uint16_t id = atomic_load_explicit(&row->wrap_id, memory_order_relaxed);
    CT_TEST_POINT("wrap.launch_returned");
    if (CT_UNLIKELY((ct_status)result != 0 || ct_capturing() || !id))
        return false;
    if (CT_UNLIKELY(!hold(self, LAUNCH_SLOTS)))
        return count_full(self, id, *call, LAUNCH_SLOTS, false);
    const struct ct_kernel_memo *memo = ct_kernel_memo(self, function);
    if (CT_UNLIKELY(memo->handle != function ||
                    memo->version != atomic_load_explicit(&ct_names_version, memory_order_acquire))) {
        self->idle = 1;
        return false;
    }
    CT_TEST_POINT("wrap.remembered");
    uint64_t end;
    const struct record_place place = begin_record(self, &end);
    struct ct_record *record = record_at(self, &place);
    const uint32_t head = ct_head(id, CT_KIND_LAUNCH, LAUNCH_SLOTS);
    memcpy(record, &head, sizeof(head)); /* as one word, since compilers would emit three stores */
    record->status = 0;
    record->end = end;
    record->span = ct_span(end - call->start, call->depth, 0);
    record->value = stream == 0 && row->flags & CT_ROW_PER_THREAD ? 2 : stream;
    struct launch_words *payload = (struct launch_words *)(void *)(record + 1);
    payload->kernel_grid_x = memo->number | launch->kernel_grid_x;
    payload->grid_yz = launch->grid_yz;
    CT_TEST_POINT("wrap.half_written");
    payload->block_xy = launch->block_xy;
    payload->block_z_shared = launch->block_z_shared;
    finish_record(self, &place, LAUNCH_SLOTS, call->depth);
    return true;
}

/* Wraps cuLaunchKernel and functions with the same parameters: function, grid, block, shared memory, stream,
 * and two words that the wrapper does not read. */
word CT_WRAP(launch)(word a, word b, word c, word d, word e, word f)
{
    FOUND_BY_TRAMPOLINE(row, self, place);
    const word *const stack = stack_words(place);
    const word g = stack[0], h = stack[1], i = stack[2], j = stack[3], k = stack[4];
    const struct entered_call call = enter_launch(row, self, place);
    typedef word function(word, word, word, word, word, word, word, word, word, word, word);
    const word result = ((function *)(uintptr_t)row->real)(a, b, c, d, e, f, g, h, i, j, k);
    const struct launch_words launch = { pair(0, b), pair(c, d), pair(e, f), pair(g, h) };
    if (CT_LIKELY(leave_launch(row, self, &call, result, a, i, &launch)))
        return result;
    const word args[] = { a, b, c, d, e, f };
    return leave_slow(row, self, call, result, args, stack);
}

/* Wraps cuLaunchKernelEx, which takes the configuration, the function, and two arguments that the wrapper
 * does not read. */
word CT_WRAP(launch_ex)(word a, word b, word c, word d, word e, word f)
{
    FOUND_BY_TRAMPOLINE(row, self, place);
    const struct entered_call call = enter_launch(row, self, place);
    typedef word function(word, word, word, word, word, word);
    const word result = ((function *)(uintptr_t)row->real)(a, b, c, d, e, f);
    const struct ct_launch_config *config = (const struct ct_launch_config *)a;
    if (CT_LIKELY((ct_status)result == 0 && config)) {
        const uint32_t *grid = config->grid, *block = config->block;
        const struct launch_words launch = { pair(0, grid[0]), pair(grid[1], grid[2]),
                                             pair(block[0], block[1]), pair(block[2], config->shared_bytes) };
        if (CT_LIKELY(leave_launch(row, self, &call, result, b, config->stream, &launch)))
            return result;
    }
    const word args[] = { a, b, c, d, e, f };
    return leave_slow(row, self, call, result, args, NULL);
}
