/* The hook's fastest path, which plain calls take, as in hook/call/wrap.c and
 * hook/arch/x86_64/trampoline_x86_64.S. For each entry of HOOK_PATHS, there is a copy of the path with only
 * the parts listed in that entry. This file is compiled with the same flags as wrap.c. Constants replace the
 * results of an omitted part, so that the other parts do not change. */
#include "hook_parts.h"
#include "ring.h"

#include <string.h>

/* The row and the producer, which the hook would have to look up. */
enum { ROW = 40 };
struct parts_page parts_page;
__thread struct ct_producer *ct_self;
struct ct_row ct_rows[CT_ROWS_ALL];
static volatile uint64_t sink;

__attribute__((noinline)) int parts_bare(void **context)
{
    *context = (void *)(uintptr_t)0x1000;
    return 0;
}

void parts_begin(struct ct_lane *lane, uint8_t *ring, uint64_t slots)
{
    ct_rows[ROW].real = (void *)(uintptr_t)parts_bare;
    atomic_store(&ct_rows[ROW].enter_id, 7);
    atomic_store(&ct_rows[ROW].leave_id, 7);
    /* The producer never reaches the wake-up position, as if a collector always read the ring in time. */
    atomic_store(&lane->wake, UINT64_MAX);
    parts_page.producer =
        (struct ct_producer){ .lane = lane, .ring = ring, .mask = slots - 1, .limit = UINT64_MAX, .idle = 1 };
    ct_self = &parts_page.producer;
}

/* Runs if a call took too long for a short record because of an interrupt. The hook records such calls on its
 * slow path. */
static __attribute__((noinline, cold)) void lasted(void)
{
    sink++;
}

static inline __attribute__((always_inline)) uint64_t
call(unsigned parts, const struct ct_row *row, struct ct_producer *self, uintptr_t place, void **context)
{
    struct ct_lane *lane = self->lane;
    uint32_t depth = 0;
    if (parts & PART_DEPTH) {
        depth = ct_depth_around(self, place);
        __asm__("" : "+r"(depth));
        depth %= CT_OPEN_MAX;
        ct_depth_put(self, depth, place);
    }
    const uint64_t start = parts & PART_COUNTERS ? ct_counter_read() : 1;
    if (parts & PART_OPEN)
        ct_lane_enter(lane, depth,
                      parts & PART_LOOKUP ? atomic_load_explicit(&row->enter_id, memory_order_acquire) : 7,
                      start);

    const uint64_t result = (uint64_t)((int (*)(void **))(uintptr_t)row->real)(context);

    const uint16_t id = parts & PART_LOOKUP ? atomic_load_explicit(&row->leave_id, memory_order_relaxed) : 7;
    const uint64_t position = self->position;
    if (parts & PART_GUARD) {
        if (CT_UNLIKELY(!id || !self->idle || position + 1 > self->limit))
            __builtin_trap();
        self->idle = 0;
        atomic_signal_fence(memory_order_seq_cst);
    }
    if (parts & PART_STATE)
        ct_lane_announce(lane, position);
    const uint64_t end = parts & PART_COUNTERS ? ct_counter_read() : 2;
    uint8_t *const slot = self->ring + (position & self->mask) * CT_SLOT_BYTES;
    struct ct_short *const record = (struct ct_short *)(void *)slot;
    if (parts & PART_PREFETCH)
        ct_ring_prefetch(slot);
    if (parts & PART_RECORD) {
        if (CT_UNLIKELY(!ct_short_fits(end - start, (int32_t)result) && parts & PART_COUNTERS))
            lasted();
        record->end = end;
        record->head = ct_head(id, CT_KIND_CALL, 1);
        record->span = ct_short_span(end - start, (int32_t)result, depth);
    } else if (parts & PART_COUNTERS) {
        sink = end - start;
    }
    if (parts & PART_STATE)
        ct_lane_publish(lane, position + 1);
    if (parts & PART_OPEN)
        ct_lane_leave(lane, depth);
    if (parts & (PART_STATE | PART_RECORD))
        self->position = position + 1;
    if (parts & PART_DEPTH)
        self->depth = depth;
    if (parts & PART_GUARD) {
        atomic_signal_fence(memory_order_seq_cst);
        self->idle = 1;
        if (CT_UNLIKELY(ct_wants_doorbell(lane, position + 1)))
            __builtin_trap();
    }
    return result;
}

/* Defines a path's wrapper, and copies of the hook's stub and trampoline, which call it. Without PART_LOOKUP,
 * the wrapper uses constants instead of the results of their look-up. */
#define DEFINE_PATH(name, parts)                                                                             \
    uint64_t parts_wrap_##name(void **context);                                                              \
    __attribute__((used)) uint64_t parts_wrap_##name(void **context)                                         \
    {                                                                                                        \
        register const struct ct_row *row __asm__("r11");                                                    \
        register struct ct_producer *self __asm__("r10");                                                    \
        register uintptr_t place __asm__("rax");                                                             \
        __asm__ volatile("" : "=r"(row), "=r"(self), "=r"(place));                                           \
        return call(parts, (parts)&PART_LOOKUP ? row : &ct_rows[ROW],                                        \
                    (parts)&PART_LOOKUP ? self : &parts_page.producer, place, context);                      \
    }                                                                                                        \
    __asm__(".pushsection .text\n\t.p2align 6\n\t.globl parts_" #name "\n\t.hidden parts_" #name "\n"        \
            "\t.type parts_" #name ", @function\nparts_" #name                                               \
            ":\n\tleaq ct_rows+40*32(%rip), %r11\n\tjmp 1f\n"                                                \
            "\t.p2align 6\n1:\tmovq ct_self@gottpoff(%rip), %r10\n\tmovq %fs:(%r10), %r10\n"                 \
            "\tcmpq $0, (%r10)\n\tje 2f\n\tcmpw $0, 18(%r11)\n\tje 2f\n"                                     \
            "\tcmpl $15, 44(%r10)\n\tja 2f\n\tmovq %rsp, %rax\n"                                             \
            "\tjmp parts_wrap_" #name "\n2:\tud2\n"                                                          \
            "\t.size parts_" #name ", .-parts_" #name "\n\t.popsection");
HOOK_PATHS(DEFINE_PATH)
