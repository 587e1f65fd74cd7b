/* The producers' side of unit_both_ends.c: the hook's lanes and the slow path of a call. Minimal substitutes
 * replace the other parts of the hook. */
#include "attach.h"
#include "both_ends.h"
#include "bound.h"
#include "current.h"
#include "decoded.h"
#include "gpu.h"
#include "lock.h"
#include "process.h"
#include "row_selection.h"
#include "runtime_functions.h"
#include "segment_file.h"
#include "thread.h"
#include "trampoline.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static struct ct_segment *segment;
bool ct_clock_is_counter;

uint64_t ct_now_ns(void)
{
    return ct_monotonic_ns();
}
struct ct_row ct_rows[CT_ROWS_ALL];

_Atomic bool ct_gpu_is_awaiting;
void ct_gpu_first_call(void) {}
_Atomic uint32_t ct_gpu_gate;
void ct_gpu_gate_wait(const struct ct_row *row, struct ct_producer *self)
{
    (void)row;
    (void)self;
}
void ct_gpu_gate_enter_unlaned(const struct ct_row *row)
{
    (void)row;
}
void ct_gpu_gate_leave_unlaned(const struct ct_row *row)
{
    (void)row;
}

enum ct_attached ct_process_attach(uintptr_t frame)
{
    return ct_self->lane || ct_thread_take(segment, frame) ? CT_ATTACHED : CT_ATTACHED_NOWHERE;
}
struct ct_segment *ct_process_current(void)
{
    return segment;
}
uint32_t ct_process_epoch(void)
{
    return 1;
}
/* The whole segment is mapped. Lanes' headers remain in the mapping of the whole segment and are not mapped
 * at `lane_place`, because TSan identifies memory by its address. */
static uint32_t lanes;
uint32_t ct_segment_lanes(void)
{
    return lanes;
}
struct ct_lane *ct_segment_lane(void *lane_place, uint8_t **ring)
{
    (void)lane_place;
    uint8_t *lane = (uint8_t *)segment + ct_segment_lane_offset(segment, lanes);
    *ring = lane + CT_LANE_HEADER_BYTES;
    return (struct ct_lane *)(void *)lane;
}
void ct_segment_lane_done(void)
{
    atomic_store(&segment->lanes, ++lanes);
}
uint64_t ct_segment_ring_slots(void)
{
    return BOTH_ENDS_RING_BYTES / CT_SLOT_BYTES;
}
uint64_t ct_segment_first_bytes(uint32_t index)
{
    return ct_ring_slots(index, 0, ct_segment_ring_slots()) * CT_SLOT_BYTES;
}
uint8_t *ct_segment_ring(uint32_t index, const struct ct_ring_piece *piece, uint8_t *ring)
{
    (void)ring;
    return (uint8_t *)segment + ct_segment_ring_offset(segment, index, piece->ring_bytes);
}
bool ct_segment_may_allocate(enum ct_bound_need need)
{
    (void)need;
    return true;
}
enum ct_loss_cause ct_segment_refusal(void)
{
    return CT_LOSS_MEMORY;
}
uint32_t ct_thread_number(void)
{
    return (uint32_t)gettid();
}
void *ct_bound_map(void *at, size_t bytes, int protection, int fd, off_t offset)
{
    (void)at;
    void *memory = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, fd, offset);
    return memory == MAP_FAILED ? NULL : memory;
}
void ct_bound_unmap(void *memory, size_t bytes)
{
    (void)memory, (void)bytes; /* a ring that has grown remains mapped */
}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
bool ct_process_lock(void)
{
    return pthread_mutex_lock(&lock) == 0;
}
void ct_process_unlock(void)
{
    pthread_mutex_unlock(&lock);
}
uint16_t ct_row_define(uint32_t row)
{
    (void)row;
    return 1;
}
void ct_attach_apply(struct ct_producer *producer)
{
    (void)producer;
}
void ct_selection_follow(struct ct_segment *of)
{
    (void)of;
}
bool ct_selection_skips(const struct ct_producer *producer, uint32_t row)
{
    (void)producer, (void)row;
    return false;
}
void *ct_runtime_elsewhere(uint32_t row)
{
    (void)row;
    return NULL;
}
void *ct_runtime_real(uint32_t row, const void *caller)
{
    (void)row, (void)caller;
    return NULL;
}
bool ct_decode_always(uint32_t row)
{
    (void)row;
    return false;
}

/* Makes records with and without payloads. Some payloads are longer than necessary. Each record identifies
 * its call. */
struct ct_decoded ct_decode(const struct ct_frame *frame)
{
    const uint8_t payloads = (uint8_t)(frame->result % 3);
    return (struct ct_decoded){
        .payload_bytes = (uint8_t)(payloads * sizeof(struct ct_transfer)),
        .kind = payloads == 0 ? CT_KIND_CALL : CT_KIND_TRANSFER,
        .flags = CT_FLAG_BYTES,
        .value = frame->args[0],
        .payload.transfer = {
            .source = frame->args[0] + BOTH_ENDS_SOURCE,
            .destination = frame->args[0] + BOTH_ENDS_DESTINATION,
        },
    };
}

bool both_ends_begin(struct ct_segment *of, struct ct_control *control)
{
    segment = of;
    (void)control;
    ct_rows[0].real = (void *)of; /* never called */
    ct_rows[0].id = 1;
    return true;
}

void both_ends_call(uint64_t number)
{
    struct ct_frame frame = { .result = number, .args = { number } };
    ct_call_begin(&frame);
    frame.result = number;
    ct_call_end(&frame, NULL);
}
