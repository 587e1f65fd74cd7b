#include "gpu.h"

#include "correlation.h"
#include "current.h"
#include "error_guard.h"
#include "gpu_lane.h"
#include "gpu_library.h"
#include "loader.h"
#include "setting.h"
#include "symbol.h"
#include "system.h"

#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define GPU_PATIENCE_NS UINT64_C(2000000000)

/* The recording's phase. Other threads begin a recording by changing IDLE to STARTING. All further changes
 * are made by the recording's thread. */
enum phase {
    PHASE_IDLE,
    PHASE_STARTING,
    PHASE_ON,
    PHASE_OVER, /* the process is about to exit, or is a child that inherited the recording */
};
static _Atomic uint32_t phase;

enum order {
    ORDER_NONE,
    ORDER_WAKE, /* a buffer is full */
    ORDER_EXIT,
};
static _Atomic uint32_t order;

_Atomic bool ct_gpu_wanted;
static _Atomic bool again;       /* a new segment wants a recording while the previous one is ending */
static uint32_t recordings;      /* number of recordings that this process has begun */
static uint32_t epoch;           /* the process's epoch when the recording began */
static struct ct_segment *place; /* the segment of the recording */

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX, NULL, NULL, 0);
}

/* Waits while the word has the value, but at most `ns` nanoseconds. May return early. */
static void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
    const struct timespec most = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
    syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, &most, NULL, 0);
}

static void set_phase(enum phase now)
{
    atomic_store_explicit(&phase, now, memory_order_release);
    futex_wake(&phase);
}

/* Waits until the thread has left the phase `first`, and also `second`. */
static void wait_for_phase(enum phase first, enum phase second)
{
    const uint64_t until_ns = ct_now_ns() + GPU_PATIENCE_NS;
    for (;;) {
        const uint32_t now = atomic_load_explicit(&phase, memory_order_acquire);
        const uint64_t now_ns = ct_now_ns();
        if ((now != first && now != second) || now_ns >= until_ns)
            return;
        futex_wait(&phase, now, until_ns - now_ns);
    }
}

static void report(struct ct_segment *segment, enum ct_gpu_state state, uint32_t result, const char *holder)
{
    if (holder) {
        strncpy(segment->gpu_holder, holder, sizeof(segment->gpu_holder) - 1);
        segment->gpu_holder[sizeof(segment->gpu_holder) - 1] = '\0';
    }
    atomic_store_explicit(&segment->gpu, (uint32_t)state | result << 8, memory_order_release);
}

/* ---- the recording's thread ---- */

static bool is_abandoned(void)
{
    return epoch != ct_process_epoch() ||
           atomic_load_explicit(&place->flags, memory_order_relaxed) & CT_SEGMENT_DETACHED;
}

static void host_report(enum ct_gpu_state state, uint32_t result, const char *holder)
{
    /* An abandoned segment may be unmapped. */
    if (!is_abandoned())
        report(place, state, result, holder);
    if (state == CT_GPU_ON)
        set_phase(PHASE_ON);
}

static enum ct_gpu_order host_wait(uint32_t ms)
{
    futex_wait(&order, ORDER_NONE, (uint64_t)ms * 1000000);
    uint32_t wake = ORDER_WAKE;
    atomic_compare_exchange_strong(&order, &wake, ORDER_NONE);
    if (atomic_load_explicit(&order, memory_order_acquire) == ORDER_EXIT)
        return CT_GPU_EXIT;
    return is_abandoned() ? CT_GPU_STOP : CT_GPU_GO_ON;
}

static void host_wake(void)
{
    uint32_t none = ORDER_NONE;
    if (atomic_compare_exchange_strong(&order, &none, ORDER_WAKE))
        futex_wake(&order);
}

static void host_note(uint32_t correlation)
{
    if (atomic_load_explicit(&phase, memory_order_acquire) == PHASE_ON)
        ct_correlation_note(ct_correlation(recordings, correlation));
}

static uint64_t host_now(void)
{
    return ct_now();
}

static const struct ct_gpu_host host = {
    .open = ct_gpu_library_open,
    .symbol = ct_loader_symbol,
    .objects = ct_gpu_library_objects,
    .does_work = ct_gpu_library_does_work,
    .now = host_now,
    .wait = host_wait,
    .wake = host_wake,
    .report = host_report,
    .text = ct_gpu_lane_text,
    .release = ct_gpu_lane_release,
    .work = ct_gpu_lane_work,
    .drop = ct_gpu_lane_drop,
    .note = host_note,
    .leave = ct_gpu_end,
};

static void record(void)
{
    epoch = ct_process_epoch();
    place = ct_process_current();
    if (!place)
        return;
    recordings++;
    report(place, CT_GPU_STARTING, 0, NULL);
    ct_gpu_record_function *function = ct_gpu_library_load();
    ct_gpu_lane_begin(recordings);
    if (function)
        function(&host);
    else
        host_report(CT_GPU_NO_LIBRARY, 0, NULL);
    ct_gpu_lane_end();
}

/* Returns true if a recording must begin for a newer segment. */
static bool must_begin_again(void)
{
    uint32_t idle = PHASE_IDLE;
    return atomic_exchange(&again, false) && atomic_compare_exchange_strong(&phase, &idle, PHASE_STARTING);
}

static void *run(void *unused)
{
    (void)unused;
    ct_self = &ct_untraced;
    prctl(PR_SET_NAME, "cudatrace-gpu", 0, 0, 0);
    do {
        record();
        if (atomic_load(&order) == ORDER_EXIT) {
            set_phase(PHASE_OVER);
            break;
        }
        set_phase(PHASE_IDLE);
    } while (must_begin_again());
    return NULL;
}

typedef int create_function(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                            void *data);
typedef int detach_function(pthread_t thread);

/* Creates the thread with all signals blocked, because signals are the program's. Returns an errno. */
static int create_thread(void)
{
    create_function *create = (create_function *)(uintptr_t)ct_symbol_of_library("pthread_create");
    detach_function *detach = (detach_function *)(uintptr_t)ct_symbol_of_library("pthread_detach");
    if (!create || !detach)
        return ENOSYS;
    pthread_t thread;
    const uint64_t before = ct_system_mask_signals(UINT64_MAX);
    const int error = create(&thread, NULL, run, NULL);
    ct_system_mask_signals(before);
    if (!error)
        detach(thread);
    return error;
}

/* ---- other threads ---- */

void ct_gpu_want(struct ct_segment *segment)
{
    const char *setting = ct_setting(CT_GPU_ENV);
    if (!setting || strcmp(setting, CT_GPU_KERNELS_TEXT) != 0)
        return;
    if (atomic_load(&phase) == PHASE_OVER)
        report(segment, CT_GPU_FORKED, 0, NULL);
    else
        atomic_store_explicit(&ct_gpu_wanted, true, memory_order_relaxed);
}

void ct_gpu_begin(void)
{
    CT_ERROR_GUARD;
    if (!atomic_exchange(&ct_gpu_wanted, false) || !ct_system_begin())
        return;
    uint32_t idle = PHASE_IDLE;
    if (!atomic_compare_exchange_strong(&phase, &idle, PHASE_STARTING)) {
        atomic_store(&again, true);
        /* The thread may have become idle before it could see `again`. */
        idle = PHASE_IDLE;
        if (!atomic_compare_exchange_strong(&phase, &idle, PHASE_STARTING)) {
            ct_system_end();
            return;
        }
        atomic_store(&again, false);
    }
    const int error = create_thread();
    struct ct_segment *segment = ct_process_current();
    if (error) {
        if (segment)
            report(segment, CT_GPU_REFUSED, (uint32_t)error, NULL);
        set_phase(PHASE_IDLE);
    }
    wait_for_phase(PHASE_STARTING, PHASE_STARTING);
    ct_system_end();
}

void ct_gpu_end(void)
{
    const uint32_t now = atomic_load_explicit(&phase, memory_order_acquire);
    if ((now != PHASE_STARTING && now != PHASE_ON) || ct_self == &ct_untraced || !ct_system_begin())
        return;
    CT_ERROR_GUARD;
    atomic_store(&order, ORDER_EXIT);
    futex_wake(&order);
    wait_for_phase(PHASE_STARTING, PHASE_ON);
    ct_system_end();
}

void ct_gpu_forget(void)
{
    if (atomic_load(&phase) != PHASE_IDLE || recordings > 0)
        atomic_store(&phase, PHASE_OVER);
    atomic_store(&ct_gpu_wanted, false);
    atomic_store(&again, false);
    atomic_store(&order, ORDER_NONE);
    ct_gpu_lane_forget();
}
