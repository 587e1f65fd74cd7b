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
    GATE_USE_MS = 2000, /* in case CUPTI hangs */
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

static _Atomic uint64_t until_ns; /* waiting calls continue at this time */
static _Atomic uint32_t waiting;  /* open calls that wait at the gate */

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
        else if (now_ns >= end_ns)
            return;
        else if (may_sleep)
            ct_futex_wait(&ct_gpu_gate, now, end_ns - now_ns);
    }
}

void ct_gpu_gate_wait(const struct ct_row *row, bool is_open_call)
{
    if (!ct_gpu_gate_holds(row))
        return;
    CT_ERROR_GUARD;
    const bool may_sleep = ct_system_begin();
    atomic_fetch_add(&waiting, is_open_call);
    wait_until_open(may_sleep);
    atomic_fetch_sub(&waiting, is_open_call);
    if (may_sleep)
        ct_system_end();
}

/* ---- the recording's thread ---- */

static bool is_held(uint32_t id)
{
    struct ct_segment *segment = ct_process_current();
    if (!segment || id >= CT_FUNCTIONS_MAX)
        return false;
    const struct ct_function *function = ct_segment_directory(segment) + id;
    const uint32_t row = function->layer == CT_LAYER_DRIVER ? ct_row_of_driver(function->name) : CT_ROWS_ALL;
    return row < CT_ROWS_ALL && ct_gpu_gate_holds(&ct_rows[row]);
}

/* A call first becomes an open call, and is then counted as waiting. */
static bool is_quiet(void)
{
    const uint32_t held = atomic_load(&waiting);
    return ct_producers_open_calls(is_held) <= held;
}

static void limit_waits(uint32_t ms)
{
    atomic_store(&until_ns, ct_now_ns() + ms * UINT64_C(1000000));
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

bool ct_gpu_gate_close(void *const contexts[], size_t count)
{
    limit_waits(GATE_HOLD_MS);
    if (!change(GATE_OPEN, GATE_CLOSED))
        return false;
    pause_us(GATE_SETTLE_US);
    bool is_calm;
    while (!(is_calm = is_quiet()) && goes_on())
        ;
    if (is_calm && !ct_capturing() && ct_gpu_device_finish(contexts, count, goes_on)) {
        limit_waits(GATE_USE_MS);
        if (change(GATE_CLOSED, GATE_USED))
            return true;
    }
    open_from(GATE_CLOSED);
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
    atomic_store(&waiting, 0);
}
