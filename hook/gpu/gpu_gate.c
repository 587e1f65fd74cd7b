#include "gpu_gate.h"

#include "current.h"
#include "error_guard.h"
#include "futex.h"
#include "gpu_device.h"
#include "graphs.h"
#include "producer_pool.h"
#include "system.h"

#include <time.h>

enum {
    GATE_HOLD_MS = 40,
    GATE_SLICE_MS = 10,
    GATE_EVENT_SLICES = 200,  /* in case the driver waits for the GPU */
    GATE_LEAVE_SLICES = 1000, /* in case CUPTI hangs */
    GATE_POLL_US = 200,
    /* A processor's stores become visible to others in far less time. This takes the place of a fence in each
       call. */
    GATE_SETTLE_US = 1000,
};

enum gate {
    GATE_OPEN,
    GATE_CLOSED, /* waiting calls may open the gate */
    GATE_USED,   /* CUPTI is leaving */
};
_Atomic uint32_t ct_gpu_gate;

static const uint64_t ms_ns = 1000000;
static _Atomic uint64_t until_ns; /* waiting calls open a gate that is not used yet at this time */

/* Once the gate is used, waits are limited in slices of time during which a call waits. Time in which the
 * process is stopped does not count, because CUPTI is stopped, too. */
static _Atomic int32_t slices_left;
static _Atomic uint64_t slice_ns; /* when the current slice began */

static bool change(enum gate from, enum gate to)
{
    uint32_t expected = from;
    return atomic_compare_exchange_strong(&ct_gpu_gate, &expected, to);
}

static void open_from(enum gate from)
{
    if (change(from, GATE_OPEN))
        ct_futex_wake(&ct_gpu_gate);
}

/* ---- calls ---- */

/* Returns whether the limit has not been reached. Of several waiting threads, one counts each slice. */
static bool count_slice(void)
{
    const uint64_t now_ns = ct_now_ns();
    uint64_t begun = atomic_load(&slice_ns);
    if (now_ns - begun >= GATE_SLICE_MS * ms_ns && atomic_compare_exchange_strong(&slice_ns, &begun, now_ns))
        atomic_fetch_sub(&slices_left, 1);
    return atomic_load(&slices_left) > 0;
}

/* A thread that may not make system calls opens a gate that is not used yet, and otherwise waits without
 * sleeping. Other threads find the gate open when they stop waiting. */
static void wait_until_open(bool may_sleep)
{
    uint32_t now;
    while ((now = atomic_load(&ct_gpu_gate)) != GATE_OPEN) {
        const uint64_t now_ns = ct_now_ns(), end_ns = atomic_load(&until_ns);
        if (now == GATE_CLOSED && !may_sleep)
            change(GATE_CLOSED, GATE_OPEN);
        else if (now == GATE_CLOSED && now_ns >= end_ns)
            open_from(GATE_CLOSED);
        else if (now == GATE_USED && !count_slice())
            return;
        else if (may_sleep)
            ct_futex_wait(&ct_gpu_gate, now, now == GATE_USED ? GATE_SLICE_MS * ms_ns : end_ns - now_ns);
    }
}

/* A signal handler's call may wait during a wait of the call that the handler interrupted. If the handler
 * leaves the wait with longjmp(), the producer's note remains, but no later call has the same start. */
void ct_gpu_gate_wait(const struct ct_row *row, struct ct_producer *self)
{
    if (!ct_gpu_gate_holds(row))
        return;
    CT_ERROR_GUARD;
    const bool may_sleep = ct_system_begin();
    const uint32_t depth = self ? self->depth - 1 : CT_OPEN_MAX;
    const uint64_t before = self ? atomic_load(&self->held_start) : 0;
    if (depth < CT_OPEN_MAX)
        atomic_store(&self->held_start,
                     atomic_load_explicit(&self->lane->open[depth].start, memory_order_relaxed));
    wait_until_open(may_sleep);
    if (depth < CT_OPEN_MAX)
        atomic_store(&self->held_start, before);
    if (may_sleep)
        ct_system_end();
}

/* The number of calls that the gate holds, made by threads without lanes, and not waiting. A call that is
 * left with longjmp() is counted for ever, and CUPTI then stays. */
static _Atomic uint32_t unlaned;

void ct_gpu_gate_enter_unlaned(const struct ct_row *row)
{
    enum { WAITS = 2 }; /* the gate may be closed again */
    if (!ct_gpu_gate_holds(row))
        return;
    atomic_fetch_add(&unlaned, 1);
    for (int i = 0; i < WAITS && atomic_load(&ct_gpu_gate) != GATE_OPEN; i++) {
        atomic_fetch_sub(&unlaned, 1);
        ct_gpu_gate_wait(row, NULL);
        atomic_fetch_add(&unlaned, 1);
    }
}

void ct_gpu_gate_leave_unlaned(const struct ct_row *row)
{
    if (ct_gpu_gate_holds(row))
        atomic_fetch_sub(&unlaned, 1);
}

/* ---- the recording's thread ---- */

static uint32_t epoch; /* the process's epoch when the gate was closed */

/* Open calls are known only as long as the process keeps its segment. */
static bool knows_calls(void)
{
    return ct_process_current() && epoch == ct_process_epoch();
}

/* An unknown function counts as held. */
static bool is_held(uint32_t id)
{
    struct ct_segment *segment = ct_process_current();
    if (!segment || !id || id >= CT_FUNCTIONS_MAX)
        return true;
    const struct ct_function *function = ct_segment_directory(segment) + id;
    if (function->layer != CT_LAYER_DRIVER)
        return false;
    const uint32_t row = ct_row_of_driver(function->name);
    return row < CT_ROWS_ALL && ct_gpu_gate_holds(&ct_rows[row]);
}

/* Returns whether all open calls of functions that the gate holds are waiting. */
static bool is_quiet(void)
{
    return ct_producers_open_calls(is_held) == 0 && atomic_load(&unlaned) == 0 && knows_calls();
}

static void pause_us(uint32_t us)
{
    clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = us * 1000L }, NULL);
}

/* Pauses. Returns false if the gate has opened, or must be opened. */
static bool goes_on(void)
{
    pause_us(GATE_POLL_US);
    return atomic_load(&ct_gpu_gate) == GATE_CLOSED && ct_now_ns() < atomic_load(&until_ns);
}

/* From here on, waiting calls do not open the gate, and wait for at most `slices`. Returns false if one of
 * them has opened it. */
static bool use(int32_t slices)
{
    atomic_store(&slice_ns, ct_now_ns());
    atomic_store(&slices_left, slices);
    return change(GATE_CLOSED, GATE_USED) && knows_calls();
}

/* From here to end_event(), waiting calls do not open the gate. */
static bool begin_event(void)
{
    if (use(GATE_EVENT_SLICES) && !ct_capturing()) /* it would break the capture */
        return true;
    open_from(GATE_USED);
    return false;
}

static void end_event(void)
{
    change(GATE_USED, GATE_CLOSED);
    ct_futex_wake(&ct_gpu_gate); /* calls then wait for less time */
}

bool ct_gpu_gate_close(void *const contexts[], size_t count)
{
    static const struct ct_gpu_finish finish = { begin_event, end_event, goes_on };
    epoch = ct_process_epoch();
    atomic_store(&until_ns, ct_now_ns() + GATE_HOLD_MS * ms_ns);
    if (!change(GATE_OPEN, GATE_CLOSED))
        return false;
    pause_us(GATE_SETTLE_US);
    bool is_calm;
    while (!(is_calm = is_quiet()) && goes_on())
        ;
    if (is_calm && ct_gpu_device_finish(contexts, count, &finish) && use(GATE_LEAVE_SLICES))
        return true;
    open_from(GATE_CLOSED);
    open_from(GATE_USED);
    return false;
}

void ct_gpu_gate_release(void)
{
    open_from(GATE_USED);
}

void ct_gpu_gate_abort(void)
{
    open_from(GATE_CLOSED);
}

void ct_gpu_gate_forget(void)
{
    atomic_store(&ct_gpu_gate, GATE_OPEN);
    atomic_store(&unlaned, 0);
}
