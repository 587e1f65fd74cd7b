/* The producers' side of both_ends.c: record.c and thread.c of the hook, and for the rest of it as little as
 * they need. */
#include "both_ends.h"
#include "bound.h"
#include "graphs.h"
#include "segment_file.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

_Atomic int32_t ct_captures;
static struct ct_segment *segment;
struct ct_control *ct_control;
bool ct_clock_is_counter;
struct ct_row ct_rows[CT_ROWS_ALL];

struct ct_segment *ct_process_segment(void)
{
    return segment;
}
struct ct_segment *ct_process_current(void)
{
    return segment;
}
uint32_t ct_process_epoch(void)
{
    return 1;
}
/* All of it is mapped, and the lanes' headers stand there and not where they are wanted: TSan goes by
 * addresses. */
static uint32_t lanes;
uint32_t ct_segment_lanes(void)
{
    return lanes;
}
struct ct_lane *ct_segment_lane(void *lane_place, uint8_t **ring)
{
    (void)lane_place;
    *ring = ct_segment_ring(lanes, CT_CHUNK_BYTES);
    return (struct ct_lane *)(void *)(*ring - CT_LANE_HEADER_BYTES);
}
void ct_segment_lane_done(void)
{
    atomic_store(&segment->lanes, ++lanes);
}
uint64_t ct_segment_ring_slots(void)
{
    return BOTH_ENDS_RING_BYTES / CT_SLOT_BYTES;
}
uint8_t *ct_segment_ring(uint32_t index, uint64_t bytes)
{
    (void)bytes;
    return (uint8_t *)segment + ct_segment_lane_offset(segment, index) + CT_LANE_HEADER_BYTES;
}
bool ct_segment_may_allocate(enum ct_bound_need need)
{
    (void)need;
    return true;
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
    (void)memory, (void)bytes; /* the ring that has grown stays where it is */
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
uint16_t ct_segment_define(uint32_t row)
{
    (void)row;
    return 1;
}
bool ct_daemon_ring(void)
{
    return false;
}
void ct_process_detach(void) {}
void ct_selection_follow(struct ct_segment *of)
{
    (void)of;
}
bool ct_selection_leaves_out(const struct ct_producer *producer, const struct ct_frame *frame)
{
    (void)producer, (void)frame;
    return false;
}
void ct_selection_count(struct ct_segment *of, uint16_t function, uint64_t ticks, uint64_t bytes)
{
    (void)of, (void)function, (void)ticks, (void)bytes;
}
void ct_range_thread_exit(void) {}
void ct_named_thread_exit(void) {}
void ct_named_send(struct ct_producer *producer)
{
    (void)producer;
}
bool ct_functions_resolve(void)
{
    return true;
}
void *ct_functions_fallback(uint32_t row)
{
    (void)row;
    return NULL;
}
void *ct_runtime_real(uint32_t row, const void *caller)
{
    (void)row, (void)caller;
    return NULL;
}
void ct_decode_no_status(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)frame, (void)decoded;
}

/* Records of one to three slots, all of which say which one it is. */
static void decode(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    decoded->payload_slots = (uint8_t)(frame->result % 3);
    decoded->kind = decoded->payload_slots == 0 ? CT_KIND_CALL : CT_KIND_TRANSFER;
    decoded->flags = CT_FLAG_BYTES;
    decoded->value = frame->args[0];
    decoded->payload.transfer = (struct ct_transfer){
        .source = frame->args[0] + BOTH_ENDS_SOURCE,
        .destination = frame->args[0] + BOTH_ENDS_DESTINATION,
    };
    decoded->status = 0;
}

bool both_ends_begin(struct ct_segment *of, struct ct_control *control)
{
    segment = of;
    ct_control = control;
    ct_rows[0].decode = decode;
    ct_rows[0].real = (void *)of; /* never called */
    ct_rows[0].id = 1;
    return true;
}

void both_ends_call(uint64_t number)
{
    struct ct_frame frame = { .result = number, .args = { number } };
    ct_call_begin(&frame);
    frame.result = number;
    ct_call_end(&frame);
}
