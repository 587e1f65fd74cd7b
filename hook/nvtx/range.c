/* Thread ranges and marks. Each thread that uses ranges has memory for its open ranges and their messages,
 * mapped at the first use and unmapped when the thread exits. It also contains the thread's current level in
 * each domain. Levels are counted even while nothing is recorded, since they are returned to the application.
 *
 * A pushed range has a place among the lane's open calls, so that calls inside it have the right depth. A
 * range has no stack frame, so ct_depth_around() cannot detect that it has been left, and must treat it as
 * open. The range's place therefore contains a token that is greater than all addresses and identifies the
 * range later. The following can happen between push and pop:
 *
 *  - Ranges in two domains may overlap, so that the outer range is popped first. A range may also be popped
 *    inside a call that it encloses. In both cases, the popped range's place is set to 0, which is below all
 *    addresses. ct_depth_around() drops such a place once no later call is open. The collector skips open
 *    calls without a start.
 *  - A call may return while a range that was pushed inside it is open. In that case, the lane's depth
 *    returns to the call's depth, and the range loses its place. The range is still recorded when it is
 *    popped.
 *  - The thread may take another lane, or the process may create another segment. Like a call, a range is
 *    recorded only in the segment that was in use when it was pushed. In the child of a fork, an inherited
 *    range is not recorded, since it belongs to the parent. */
#include "range.h"

#include "bound.h"
#include "current.h"
#include "manual_event.h"
#include "names.h"
#include "nvtx_abi.h"
#include "rows.h"
#include "stack.h"
#include "test_point.h"
#include "thread.h"

enum {
    PUSHED_MAX = 1024,       /* open ranges per thread; deeper ranges only have a level, and are counted as
                              * lost */
    TEXT_BYTES = 256 * 1024, /* bytes of their messages */
};

/* Greater than any address in a program, on every architecture that the driver supports. */
#define PLACE_TOKEN (UINT64_C(1) << 63)

struct pushed {
    struct ct_range_kept kept;
    uint64_t token;    /* the value of the range's place in ct_producer.frames[] */
    uint32_t depth;    /* the index of the range's place in frames[] */
    uint32_t text_end; /* end of the range's message in the thread's text */
    uint16_t previous; /* index + 1 of the enclosing range in its domain; 0: none */
    bool open;
};

struct level {
    uint16_t top;    /* index + 1 of the domain's innermost range; 0: none */
    uint16_t kept;   /* number of the domain's ranges in `pushed` */
    uint32_t unkept; /* number of further ranges, nested in those, for which there was no room */
};

struct ct_range_thread {
    uintptr_t holder; /* stack address of the code that holds this struct; 0: not held */
    uint32_t used;    /* number of entries of `pushed`, which are in the order of pushing */
    uint32_t text_used;
    uint64_t tokens;
    struct level levels[CT_DOMAINS_MAX];
    struct pushed pushed[PUSHED_MAX];
    uint64_t scratch[CT_RANGE_PAYLOAD_BYTES / 8];
    char text[TEXT_BYTES + CT_RANGE_MESSAGE_BYTES]; /* there is always room for a message after the part in
                                                     * use */
};

static uint32_t row_push = CT_ROWS_ALL, row_mark = CT_ROWS_ALL;

bool ct_range_begin(void)
{
    row_push = ct_row_extra(CT_LAYER_NVTX, CT_CATEGORY_range, "nvtxRangePush");
    row_mark = ct_row_extra(CT_LAYER_NVTX, CT_CATEGORY_range, "nvtxMark");
    return row_push != CT_ROWS_ALL && row_mark != CT_ROWS_ALL;
}

static __thread struct ct_range_thread *mine;

/* Drops the ranges that are still open when the thread exits. */
static void end_thread(void)
{
    struct ct_range_thread *thread = mine;
    mine = NULL;
    if (thread)
        ct_pages_unmap(thread, sizeof(*thread));
}

static struct ct_range_thread *map_thread(void)
{
    void *memory = ct_pages_map(sizeof(struct ct_range_thread));
    if (!memory)
        return NULL;
    ct_thread_watch_end(CT_THREAD_RANGES, end_thread);
    return mine = memory;
}

static bool is_open(const struct ct_range_thread *thread, uint64_t token)
{
    for (uint32_t i = 0; i < thread->used; i++) {
        if (thread->pushed[i].open && thread->pushed[i].token == token)
            return true;
    }
    return false;
}

/* Frees the places of ranges that are no longer open. */
static void free_places(const struct ct_range_thread *thread, struct ct_producer *self)
{
    for (uint32_t i = 0; self->lane && i < self->depth && i < CT_OPEN_MAX; i++) {
        if (self->frames[i] & PLACE_TOKEN && !is_open(thread, self->frames[i])) {
            self->frames[i] = 0;
            self->lane->open[i].start = 0;
        }
    }
}

/* Repairs `thread` after a signal handler has jumped out of the code that held it, possibly in the middle of
 * a push or a pop. The `open` flags determine which ranges are open, and all other data is derived from these
 * flags. */
static void set_right(struct ct_range_thread *thread)
{
    while (thread->used > 0 && !thread->pushed[thread->used - 1].open)
        thread->used--;
    thread->text_used = thread->used > 0 ? thread->pushed[thread->used - 1].text_end : 0;
    for (uint32_t i = 0; i < CT_DOMAINS_MAX; i++)
        thread->levels[i].top = thread->levels[i].kept = 0;
    for (uint32_t i = 0; i < thread->used; i++) {
        struct pushed *range = &thread->pushed[i];
        struct level *level = &thread->levels[range->kept.domain];
        if (!range->open)
            continue;
        range->previous = level->top;
        level->top = (uint16_t)(i + 1);
        level->kept++;
    }
    free_places(thread, ct_self);
}

struct ct_range_thread *ct_range_hold(const void *frame, enum ct_loss_cause *cause)
{
    struct ct_range_thread *thread = mine ? mine : map_thread();
    *cause = thread ? CT_LOSS_SIGNAL : CT_LOSS_MEMORY;
    if (!thread)
        return NULL;
    if (thread->holder) {
        if (!ct_stack_left(thread->holder, (uintptr_t)frame))
            return NULL;
        set_right(thread);
    }
    thread->holder = (uintptr_t)frame;
    atomic_signal_fence(memory_order_seq_cst);
    CT_TEST_POINT("range.held");
    return thread;
}

void ct_range_release(struct ct_range_thread *thread)
{
    atomic_signal_fence(memory_order_seq_cst);
    thread->holder = 0;
}

char *ct_range_room(struct ct_range_thread *thread)
{
    return thread->text + thread->text_used;
}

void ct_range_record(struct ct_range_thread *thread, struct ct_producer *producer, uint32_t row,
                     const struct ct_range_kept *kept, uint32_t depth, uint64_t id)
{
    ct_range_write(producer, row, kept, depth, id, thread->holder, thread->scratch);
}

uint32_t ct_range_epoch(const struct ct_producer *producer)
{
    return producer == &ct_unlaned ? ct_process_epoch() : producer->epoch;
}

bool ct_range_lasts(const struct ct_range_kept *kept, const struct ct_producer *producer)
{
    return producer && kept->epoch == ct_range_epoch(producer);
}

/* ---- places among the open calls ---- */

uint32_t ct_range_depth(struct ct_producer *producer, const void *frame)
{
    return producer == &ct_unlaned ? 0 : ct_depth_around(producer, (uintptr_t)frame);
}

static void take_place(struct ct_producer *self, struct pushed *range, uint16_t function, const void *frame)
{
    const uint32_t depth = ct_depth_around(self, (uintptr_t)frame);
    if (depth < CT_OPEN_MAX)
        self->frames[depth] = range->token;
    self->depth = depth + 1;
    range->depth = depth;
    ct_lane_enter(self->lane, depth, function, range->kept.start);
    CT_TEST_POINT("range.placed");
}

static void leave_place(struct ct_producer *self, const struct pushed *range, const void *frame)
{
    const uint32_t place = range->depth;
    uint32_t depth = ct_depth_around(self, (uintptr_t)frame);
    if (place >= depth || (place < CT_OPEN_MAX && self->frames[place] != range->token))
        return; /* the range lost its place when an enclosing call returned */
    if (place + 1 == depth) {
        self->depth = place;
        depth = ct_depth_around(self, (uintptr_t)frame); /* also drops free places before `place` */
    } else if (place < CT_OPEN_MAX) {
        self->frames[place] = 0;
        self->lane->open[place].start = 0;
        CT_TEST_POINT("range.hidden");
    }
    CT_TEST_POINT("range.leaving");
    self->depth = depth;
    ct_lane_leave(self->lane, depth);
    CT_TEST_POINT("range.left");
}

/* ---- push, pop, mark ---- */

/* Keeps a range only if all enclosing ranges in its domain are kept. */
static bool keep(struct ct_range_thread *thread, struct level *level, const struct ct_said *said)
{
    if (level->unkept > 0 || thread->used == PUSHED_MAX)
        return false;
    struct pushed *range = &thread->pushed[thread->used];
    range->text_end = thread->text_used + ct_range_keep(&range->kept, said, ct_range_room(thread));
    if (range->text_end > TEXT_BYTES)
        return false;
    range->token = PLACE_TOKEN | ++thread->tokens;
    range->depth = 0;
    range->previous = level->top;
    range->open = true;
    thread->text_used = range->text_end;
    level->top = (uint16_t)++thread->used;
    level->kept++;
    CT_TEST_POINT("range.kept");

    uint16_t function;
    struct ct_producer *producer = ct_manual_event_begin(row_push, &function);
    if (!producer)
        return true;
    range->kept.start = ct_now();
    range->kept.epoch = ct_range_epoch(producer);
    if (producer != &ct_unlaned)
        take_place(producer, range, function, said->frame);
    return true;
}

int ct_range_push(const struct ct_said *said)
{
    enum ct_loss_cause cause;
    struct ct_range_thread *thread = ct_range_hold(said->frame, &cause);
    if (!thread) {
        ct_manual_event_lose(row_push, cause);
        return CT_NVTX_NO_PUSH_POP_TRACKING;
    }
    struct level *level = &thread->levels[said->domain];
    const uint32_t number = level->kept + level->unkept;
    if (!keep(thread, level, said)) {
        level->unkept++;
        ct_manual_event_lose(row_push, CT_LOSS_MEMORY);
    }
    ct_range_release(thread);
    return (int)number;
}

static void record_pushed(struct ct_range_thread *thread, const struct pushed *range, const void *frame)
{
    uint16_t function;
    struct ct_producer *producer = range->kept.epoch ? ct_manual_event_begin(row_push, &function) : NULL;
    if (!ct_range_lasts(&range->kept, producer))
        return;
    ct_range_record(thread, producer, row_push, &range->kept, range->depth, 0);
    if (producer != &ct_unlaned)
        leave_place(producer, range, frame);
}

int ct_range_pop(uint32_t domain, const void *frame)
{
    enum ct_loss_cause cause;
    struct ct_range_thread *thread = ct_range_hold(frame, &cause);
    if (!thread)
        return CT_NVTX_NO_PUSH_POP_TRACKING;
    struct level *level = &thread->levels[domain];
    const uint32_t levels = level->kept + level->unkept;
    if (level->unkept > 0) {
        level->unkept--;
    } else if (level->top) {
        struct pushed *range = &thread->pushed[level->top - 1];
        range->open = false; /* cleared first, so that the range is not recorded twice if a signal handler
                              * jumps out of this code */
        atomic_signal_fence(memory_order_seq_cst);
        record_pushed(thread, range, frame);
        CT_TEST_POINT("range.recorded");
        level->top = range->previous;
        level->kept--;
        while (thread->used > 0 && !thread->pushed[thread->used - 1].open)
            thread->used--;
        thread->text_used = thread->used > 0 ? thread->pushed[thread->used - 1].text_end : 0;
    }
    ct_range_release(thread);
    return levels > 0 ? (int)levels - 1 : CT_NVTX_NO_PUSH_POP_TRACKING;
}

void ct_range_mark(const struct ct_said *said)
{
    enum ct_loss_cause cause;
    struct ct_range_thread *thread = ct_range_hold(said->frame, &cause);
    if (!thread) {
        ct_manual_event_lose(row_mark, cause);
        return;
    }
    uint16_t function;
    struct ct_producer *producer = ct_manual_event_begin(row_mark, &function);
    if (producer) {
        struct ct_range_kept mark;
        ct_range_keep(&mark, said, ct_range_room(thread));
        ct_range_record(thread, producer, row_mark, &mark, ct_range_depth(producer, said->frame), 0);
    }
    ct_range_release(thread);
}
