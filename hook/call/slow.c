/* The slow path of a call. It handles a thread's first call, missing functions, decoded arguments, full
 * rings and losses. */
#include "attach.h"
#include "correlation.h"
#include "current.h"
#include "decoded.h"
#include "error_guard.h"
#include "gpu.h"
#include "gpu_gate.h"
#include "loss.h"
#include "process.h"
#include "reserve.h"
#include "ring.h"
#include "row_selection.h"
#include "runtime_functions.h"
#include "test_point.h"
#include "trampoline.h"

/* Substitutes for functions that the program's libcudart lacks. Without the hook, such a program could not be
 * linked. missing_function() returns cudaErrorSharedObjectSymbolNotFound. missing_text() replaces functions
 * that do not return a status, and returns NULL. */
static ct_status missing_function(void)
{
    return 302;
}
static const char *missing_text(void)
{
    return NULL;
}

static void *find_missing(uint32_t row)
{
    void *elsewhere = ct_runtime_elsewhere(row);
    if (elsewhere)
        return elsewhere;
    return ct_rows[row].flags & CT_ROW_NO_STATUS ? (void *)(uintptr_t)missing_text
                                                 : (void *)(uintptr_t)missing_function;
}

/* Begins a call's record, if there is a lane to write it to. */
static void begin(struct ct_frame *frame, const struct ct_row *row)
{
    /* Even if the process is no longer recorded. */
    if (CT_UNLIKELY(!ct_gpu_gate_is_open()) && ct_self != &ct_untraced)
        ct_gpu_gate_wait(row, NULL);
    const enum ct_attached attached = ct_process_attach(ct_frame_address(frame));
    if (attached == CT_ATTACHED_NOT)
        return;
    uint16_t id = atomic_load_explicit(&row->id, memory_order_acquire);
    if (!id)
        id = ct_row_define(frame->row);
    CT_TEST_POINT("slow.defined");
    if (CT_UNLIKELY(ct_gpu_awaits_driver()) && row->layer == CT_LAYER_DRIVER)
        ct_gpu_first_call();
    /* Read `ct_self` only once, since a signal handler may fork here. The child of the fork has no lane, and
     * its copy of the parent's data is private. */
    struct ct_producer *const self = *(struct ct_producer *volatile *)&ct_self;
    if (attached == CT_ATTACHED && self->lane) {
        frame->producer = self;
        frame->depth = ct_depth_enter(self, ct_frame_address(frame));
        frame->start = ct_now();
        CT_TEST_POINT("slow.entering");
        ct_lane_enter(self->lane, frame->depth, id, frame->start);
        CT_TEST_POINT("slow.entered");
    } else if (attached == CT_ATTACHED_NOWHERE) {
        frame->producer = &ct_unlaned;
        frame->start = ct_now();
        CT_TEST_POINT("slow.unlaned");
        ct_gpu_gate_enter_unlaned(row);
        return;
    }
    if (CT_UNLIKELY(!ct_gpu_gate_is_open()) && frame->producer)
        ct_gpu_gate_wait(row, self);
}

/* `real` is NULL if the function does not exist. */
static struct ct_target enter(struct ct_frame *frame, const struct ct_row *row, void *real)
{
    struct ct_target target = { real, CT_MODE_STRAIGHT };
    frame->producer = NULL;
    if (!real) {
        target.function = find_missing(frame->row);
        return target;
    }
    begin(frame, row);
    if (frame->producer || ct_decode_always(frame->row))
        target.mode = row->stack_words;
    return target;
}

struct ct_target ct_enter_slow(struct ct_frame *frame)
{
    CT_ERROR_GUARD;
    const struct ct_row *row = &ct_rows[frame->row];
    return enter(frame, row, row->real);
}

struct ct_target ct_enter_careful(struct ct_frame *frame, const void *caller)
{
    CT_ERROR_GUARD;
    return enter(frame, &ct_rows[frame->row], ct_runtime_real(frame->row, caller));
}

/* Decodes the call with `decode`, or with its row's decoder if `decode` is NULL. */
static struct ct_decoded decoded_call(const struct ct_frame *frame, ct_decoder *decode)
{
    if (!decode)
        return ct_decode(frame);
    struct ct_decoded decoded = { .kind = CT_KIND_CALL, .status = (int32_t)frame->result };
    decode(frame, &decoded);
    return decoded;
}

/* Ends a call that gets no record because nothing is being recorded or the thread has lost its lane. */
static void leave_unrecorded(const struct ct_frame *frame)
{
    if (ct_decode_always(frame->row))
        ct_decode(frame);
}

/* Counts a call made by a thread that has no lane, in a process that is being recorded. */
static void leave_unlaned(const struct ct_frame *frame, uint16_t id)
{
    struct ct_segment *segment = ct_process_current();
    ct_gpu_gate_leave_unlaned(&ct_rows[frame->row]);
    if (segment && atomic_load_explicit(&ct_rows[frame->row].skipped, memory_order_relaxed))
        ct_record_skip(segment, id, ct_now() - frame->start, 0);
    else if (segment)
        ct_record_lose_unlaned(segment, id, frame->start, ct_now());
}

/* Counts a call that the selection leaves out, even in a signal handler that interrupted a record. Returns
 * false if the selection includes the call. */
static bool leave_skipped(struct ct_frame *frame, uint16_t id, ct_decoder *decode, bool idle)
{
    struct ct_producer *self = frame->producer;
    if (!id || !ct_selection_skips(self, frame->row))
        return false;
    const uint64_t end = ct_now();
    frame->producer = NULL; /* so that the decoder sends no names */
    CT_TEST_POINT("slow.skipping");
    const struct ct_decoded decoded = decoded_call(frame, decode);
    const uint64_t bytes = ct_decoded_bytes(&decoded);
    if (idle) {
        self->idle = 0;
        atomic_signal_fence(memory_order_seq_cst);
        ct_record_skip_held(self, id, end - frame->start, bytes);
        atomic_signal_fence(memory_order_seq_cst);
        self->idle = 1;
        atomic_signal_fence(memory_order_seq_cst);
    } else {
        ct_record_skip(self->segment, id, end - frame->start, bytes);
    }
    ct_lane_leave(self->lane, frame->depth);
    CT_TEST_POINT("slow.skipped");
    self->depth = frame->depth;
    self->trees += ct_outermost(self, frame->depth);
    return true;
}

/* Counts a call as lost because it was made in a signal handler that interrupted a record, or because the
 * directory has no room for its function. */
static void leave_lost(struct ct_frame *frame, uint16_t id)
{
    struct ct_producer *self = frame->producer;
    ct_record_lose(self, CT_LOSS_MEMORY, id, frame->start, ct_now());
    frame->producer = NULL; /* so that no names are sent in the middle of a record */
    leave_unrecorded(frame);
    self->depth = frame->depth;
    ct_lane_leave(self->lane, frame->depth);
}

/* True for a low-priority call, which is dropped before others (see also count_full()). An object payload
 * does not raise a call's priority, since programs query events and streams in loops. */
static bool says_little(const struct ct_frame *frame, const struct ct_record *record)
{
    enum { NOT_READY = 600 }; /* cudaErrorNotReady, which is not a failure */
    return ct_row_says_little(&ct_rows[frame->row]) &&
           (record->kind == CT_KIND_CALL || record->kind == CT_KIND_OBJECTS) &&
           (record->status == 0 || record->status == NOT_READY) &&
           record->end - frame->start < frame->producer->long_ticks;
}

/* Counts a call that cannot be recorded because the ring is full. Most such calls take the fast path,
 * count_full(), instead. */
static void lose_full(const struct ct_frame *frame, enum ct_loss_cause cause, uint16_t id, uint64_t end,
                      const struct ct_decoded *decoded)
{
    struct ct_producer *self = frame->producer;
    ct_record_lose_held(self, cause, id, frame->start, end, ct_decoded_bytes(decoded));
    ct_lane_publish(self->lane, self->position); /* withdraws the announcement */
}

static void leave(struct ct_frame *frame, ct_decoder *decode)
{
    const uint16_t id = atomic_load_explicit(&ct_rows[frame->row].id, memory_order_relaxed);
    struct ct_producer *self = frame->producer;
    CT_TEST_POINT("slow.returned");
    if (self == &ct_unlaned)
        leave_unlaned(frame, id);
    if (!self || self != ct_self || !self->lane) {
        leave_unrecorded(frame);
        return;
    }
    /* Another thread has abandoned the segment since the call began, so the call is not recorded in any
     * segment. */
    if (self->epoch != ct_process_epoch()) {
        leave_unrecorded(frame);
        ct_attach_apply(self);
        return;
    }
    struct ct_lane *lane = self->lane;
    const bool idle = ct_record_recover(self, frame->depth, self->frames[frame->depth % CT_OPEN_MAX]);
    const bool is_skipped = leave_skipped(frame, id, decode, idle);
    if (is_skipped || !idle || !id) {
        if (!is_skipped)
            leave_lost(frame, id);
        /* Once a segment has been abandoned, no function has a function number. */
        if (idle && ct_wants_attention(lane))
            ct_attach_apply(self);
        return;
    }
    self->idle = 0;
    atomic_signal_fence(memory_order_seq_cst);

    ct_lane_announce(lane, self->position);
    CT_TEST_POINT("slow.announced");
    const uint64_t end = ct_now();
    const struct ct_decoded decoded = decoded_call(frame, decode);
    CT_TEST_POINT("slow.decoded");
    struct ct_record record = {
        .end = end,
        .span = ct_span(end - frame->start, frame->depth, decoded.flags),
        .function = id,
        .kind = decoded.kind & CT_KIND_MASK,
        .status = decoded.status,
        .value = decoded.value,
    };
    ct_record_measure(&record, decoded.payload_bytes);
    bool room = ct_record_room_for_all(self, record.slots);
    const bool more = !room && !says_little(frame, &record);
    const bool reserve = !room && ct_record_reserve(self, record.slots);
    room = room || (reserve && more);
    if (CT_LIKELY(room))
        ct_record_write(self, &record, &decoded.payload, decoded.payload_bytes);
    else
        lose_full(frame, reserve ? CT_LOSS_PRESSURE : self->full_cause, id, end, &decoded);
    if (more && !room)
        ct_reserve_note_lost(self, record.slots);
    CT_TEST_POINT("slow.leaving");
    ct_lane_leave(lane, frame->depth);
    CT_TEST_POINT("slow.left");
    if (CT_UNLIKELY(self->noted) && room)
        ct_correlation_write(self, frame->depth);
    self->trees += ct_outermost(self, frame->depth);
    atomic_signal_fence(memory_order_seq_cst); /* see ct_record_take_over() */
    self->depth = frame->depth;
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 1;
    if (!room || ct_wants_doorbell(lane, self->position))
        ct_attach_apply(self);
}

void ct_leave_slow(struct ct_frame *frame)
{
    leave(frame, NULL);
}

void ct_call_begin(struct ct_frame *frame)
{
    CT_ERROR_GUARD;
    frame->producer = NULL;
    frame->stack_args = (const uint64_t *)(const void *)(frame + 1);
    begin(frame, &ct_rows[frame->row]);
}

void ct_call_end(struct ct_frame *frame, ct_decoder *decode)
{
    CT_ERROR_GUARD;
    leave(frame, decode);
}
