/* The hook's short way, as hook/entry.c and hook/trampoline_x86_64.S have it, once for each row of HOOK_PATHS:
 * with some of its parts and without the others. It is compiled as entry.c is, for general registers alone.
 * What is left out leaves a constant behind, so that the rest stays as it is. */
#include "hook_parts.h"

/* The addresses that the hook would have to look up. */
enum { ROW = 40 };
/* On a page's begin, as the first of a segment's producers. */
_Alignas(4096) struct ct_producer parts_producer;
__thread struct ct_producer *ct_self;
struct ct_row ct_rows[CT_ROWS_ALL];
static volatile uint64_t sink;

enum { LINES_AHEAD = 4, LINE_BYTES = 64 };

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
    /* Far from any position, as when the collector keeps up. */
    atomic_store(&lane->wake, UINT64_MAX);
    parts_producer = (struct ct_producer){
        .lane = lane, .ring = ring, .mask = slots - 1, .limit = UINT64_MAX, .idle = 1
    };
    ct_self = &parts_producer;
}

static inline __attribute__((always_inline)) struct ct_target enter(struct ct_frame *frame, unsigned parts)
{
    const struct ct_row *row = &ct_rows[parts & PART_LOOKUP ? frame->row : ROW];
    struct ct_producer *self = parts & PART_LOOKUP ? ct_self : &parts_producer;
    struct ct_lane *lane = self->lane;
    const uint32_t id =
        parts & PART_LOOKUP ? atomic_load_explicit(&row->enter_id, memory_order_acquire) : 7;
    if (parts & PART_LOOKUP && CT_UNLIKELY(!lane || !id))
        return (struct ct_target){ NULL, CT_MODE_STRAIGHT };

    const uint32_t depth = parts & PART_DEPTH ? ct_depth_enter(self, ct_frame_place(frame)) : 0;
    frame->depth = depth;
    frame->producer = self;

    const uint64_t start = parts & PART_COUNTERS ? ct_counter_read() : 1;
    frame->start = start;
    if (parts & PART_OPEN)
        ct_lane_enter(lane, depth, id, start);
    return (struct ct_target){ row->real, parts & PART_LOOKUP ? row->stack_words : 0 };
}

static inline __attribute__((always_inline)) void leave(struct ct_frame *frame, unsigned parts)
{
    const struct ct_row *row = &ct_rows[parts & PART_LOOKUP ? frame->row : ROW];
    struct ct_producer *self = parts & PART_DEPTH ? frame->producer : &parts_producer;
    const uint32_t depth = parts & PART_DEPTH ? frame->depth : 0;
    const uint16_t id =
        parts & PART_LOOKUP ? atomic_load_explicit(&row->leave_id, memory_order_relaxed) : 7;
    if (parts & PART_GUARD) {
        if (CT_UNLIKELY(self != ct_self || !id || !self->idle || self->position >= self->limit))
            __builtin_trap();
        self->idle = 0;
        atomic_signal_fence(memory_order_seq_cst);
    }

    struct ct_lane *lane = self->lane;
    const uint64_t position = self->position;
    if (parts & PART_STATE)
        ct_lane_announce(lane, position);
    const uint64_t end = parts & PART_COUNTERS ? ct_counter_read() : 2;
    struct ct_record *record = (struct ct_record *)(void *)(self->ring + (position & self->mask) * CT_SLOT_BYTES);
    if (parts & PART_PREFETCH)
        __asm__ volatile("prefetchw %0" : : "m"(*((const char *)record + LINES_AHEAD * LINE_BYTES)));
    if (parts & PART_RECORD) {
        record->end = end;
        record->span = ct_span(end - frame->start, depth, 0);
        record->function = id;
        record->kind = 1;
        record->slots = 1;
        record->status = (int32_t)frame->result;
        record->value = 0;
    } else if (parts & PART_COUNTERS) {
        sink = end - frame->start;
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
        if (CT_UNLIKELY(ct_lane_wants_doorbell(lane, position + 1)))
            __builtin_trap();
    }
}

/* The stub and the trampoline's short way, with the frame of hook.h: 96 bytes, stack_args at 48, row at 72,
 * result at 80. */
#define DEFINE_PATH(name, parts)                                                                             \
    struct ct_target parts_enter_##name(struct ct_frame *frame);                                             \
    void parts_leave_##name(struct ct_frame *frame);                                                         \
    __attribute__((used)) struct ct_target parts_enter_##name(struct ct_frame *frame)                        \
    {                                                                                                        \
        return enter(frame, parts);                                                                          \
    }                                                                                                        \
    __attribute__((used)) void parts_leave_##name(struct ct_frame *frame)                                    \
    {                                                                                                        \
        leave(frame, parts);                                                                                 \
    }                                                                                                        \
    __asm__(".pushsection .text\n\t.p2align 6\n\t.globl parts_" #name "\n\t.hidden parts_" #name "\n"        \
            "\t.type parts_" #name ", @function\nparts_" #name ":\n\tmovl $40, %r11d\n\tjmp 1f\n"            \
            "\t.p2align 6\n1:\tpushq %rbp\n\tmovq %rsp, %rbp\n\tsubq $96, %rsp\n"                            \
            "\tmovq %rdi, 0(%rsp)\n\tmovq %rsi, 8(%rsp)\n\tmovq %rdx, 16(%rsp)\n\tmovq %rcx, 24(%rsp)\n"     \
            "\tmovq %r8, 32(%rsp)\n\tmovq %r9, 40(%rsp)\n\tleaq 16(%rbp), %rax\n\tmovq %rax, 48(%rsp)\n"     \
            "\tmovl %r11d, 72(%rsp)\n\tmovq %rsp, %rdi\n\tcall parts_enter_" #name "\n"                      \
            "\ttestq %rdx, %rdx\n\tjnz 2f\n"                                                                 \
            "\tmovq -96(%rbp), %rdi\n\tmovq -88(%rbp), %rsi\n\tmovq -80(%rbp), %rdx\n"                       \
            "\tmovq -72(%rbp), %rcx\n\tmovq -64(%rbp), %r8\n\tmovq -56(%rbp), %r9\n"                         \
            "\tcall *%rax\n\tmovq %rax, -16(%rbp)\n\tleaq -96(%rbp), %rdi\n\tleaq -96(%rbp), %rsp\n"         \
            "\tcall parts_leave_" #name "\n\tmovq -16(%rbp), %rax\n\tleave\n\tret\n2:\tud2\n"                \
            "\t.size parts_" #name ", .-parts_" #name "\n\t.popsection");
HOOK_PATHS(DEFINE_PATH)
