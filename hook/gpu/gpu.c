#include "gpu.h"

#include "correlation.h"
#include "current.h"
#include "descriptor.h"
#include "error_guard.h"
#include "find_daemon.h"
#include "fork.h"
#include "futex.h"
#include "gpu_device.h"
#include "gpu_gate.h"
#include "gpu_lane.h"
#include "gpu_last.h"
#include "gpu_library.h"
#include "loader.h"
#include "program.h"
#include "setting.h"
#include "stack.h"
#include "symbol.h"
#include "system.h"
#include "test_point.h"
#include "thread.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREAD_NAME "cudatrace-gpu"

/* The recording's phase. Other threads begin a recording by changing IDLE to STARTING. All further changes
 * are made by the recording's thread. */
enum phase {
    PHASE_IDLE,
    PHASE_STARTING,
    PHASE_ON,
    PHASE_OVER, /* the process is about to exit, or is a child that inherited the recording */
};
static _Atomic uint32_t phase;

/* An order to the recording's thread. A higher order replaces a lower one. */
enum order {
    ORDER_NONE,
    ORDER_WAKE,  /* a buffer is full */
    ORDER_CLOSE, /* end at once; the request remains */
    ORDER_EXIT,  /* end at once; the process is about to exit */
};
static _Atomic uint32_t order;

_Atomic bool ct_gpu_is_awaiting;
static _Atomic bool has_called;     /* the driver has been called while there was a segment */
static _Atomic uint32_t recordings; /* number of recordings that this process has begun */
static uint32_t epoch;              /* the process's epoch when the recording began */
static struct ct_segment *place;    /* the segment of the recording */
static uint64_t end_ns;             /* the request that the recording follows, which is its end */
static bool is_early;               /* the driver was not initialised when the recording began */
static _Atomic bool is_held;        /* the process's first call waits until the recording has begun */
static _Atomic uint32_t closed;     /* number of ct_gpu_close() calls: no thread may be created */

static void set_phase(enum phase now)
{
    atomic_store_explicit(&phase, now, memory_order_release);
    ct_futex_wake(&phase);
}

/* Waits until the thread has left the phase `first`, and also `second`, but at most until `until_ns`. */
static void wait_for_phase(enum phase first, enum phase second, uint64_t until_ns)
{
    for (;;) {
        const uint32_t now = atomic_load_explicit(&phase, memory_order_acquire);
        const uint64_t now_ns = ct_now_ns();
        if ((now != first && now != second) || now_ns >= until_ns)
            return;
        ct_futex_wait(&phase, now, until_ns - now_ns);
    }
}

static void give_order(enum order given)
{
    uint32_t before = atomic_load(&order);
    while (before < given && !atomic_compare_exchange_strong(&order, &before, given))
        ;
    ct_futex_wake(&order);
}

/* Returns whether the recording must end without the steps that let CUPTI leave the process. */
static bool must_end_at_once(void)
{
    return atomic_load_explicit(&order, memory_order_acquire) >= ORDER_CLOSE;
}

static bool is_setting(const char *text)
{
    const char *setting = ct_setting(CT_GPU_ENV);
    return setting && strcmp(setting, text) == 0;
}

static void report(struct ct_segment *segment, enum ct_gpu_state state, uint32_t result, const char *holder)
{
    if (holder) {
        strncpy(segment->gpu_holder, holder, sizeof(segment->gpu_holder) - 1);
        segment->gpu_holder[sizeof(segment->gpu_holder) - 1] = '\0';
    }
    atomic_store_explicit(&segment->gpu, (uint32_t)state | result << 8, memory_order_release);
}

/* ---- requests ---- */

static bool is_followed(const struct ct_segment *segment)
{
    return atomic_load_explicit(&segment->gpu_until_ns, memory_order_relaxed) ==
           atomic_load_explicit(&segment->gpu_followed_ns, memory_order_relaxed);
}

/* Notes that the segment's state is the result of the request, and notifies the collector. The fence orders
 * the note before the check of whether the collector is asleep. */
static void note_followed(struct ct_segment *segment, uint64_t request_ns)
{
    atomic_store_explicit(&segment->gpu_followed_ns, request_ns, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    ct_daemon_ring();
}

/* Follows a request without a recording. Returns false if the request needs one. */
static bool follow_at_once(struct ct_segment *segment)
{
    const uint64_t request_ns = atomic_load_explicit(&segment->gpu_until_ns, memory_order_relaxed);
    if (request_ns > ct_monotonic_ns()) {
        if (!ct_system_allowed())
            report(segment, CT_GPU_FILTERED, 0, NULL);
        else if (atomic_load(&phase) == PHASE_OVER)
            report(segment, CT_GPU_FORKED, 0, NULL);
        else
            return false;
    }
    note_followed(segment, request_ns);
    return true;
}

/* ---- the recording's thread ---- */

static _Atomic int32_t thread_id; /* of the recording's thread */

static bool is_abandoned(void)
{
    return epoch != ct_process_epoch() ||
           atomic_load_explicit(&place->flags, memory_order_relaxed) & CT_SEGMENT_DETACHED;
}

static void host_report(enum ct_gpu_state state, uint32_t result, const char *holder)
{
    if (!is_abandoned()) {
        report(place, state, result, holder);
        if (state != CT_GPU_STARTING)
            note_followed(place, end_ns);
    }
    if (state == CT_GPU_ON)
        set_phase(PHASE_ON);
}

/* Returns the time until the end of the recording, or 0 if its time is over. Follows a new end. If the new
 * end has passed, host_report() follows it, after the recording has ended. A segment that was created after
 * `place` was abandoned may have the same address, so the caller must check that first. */
static uint64_t left_ns(void)
{
    const uint64_t request_ns = atomic_load_explicit(&place->gpu_until_ns, memory_order_relaxed);
    const uint64_t now_ns = ct_monotonic_ns();
    const bool is_new = request_ns != end_ns;
    end_ns = request_ns;
    if (end_ns <= now_ns)
        return 0;
    if (is_new)
        note_followed(place, end_ns);
    return end_ns - now_ns;
}

static enum ct_gpu_order host_wait(uint32_t ms)
{
    const uint64_t most_ns = (uint64_t)ms * 1000000, own_ns = is_abandoned() ? 0 : left_ns();
    if (ct_gpu_last_is_alone()) { /* the last of the program's threads had made no call, or ended unseen */
        ct_gpu_last_watch();
        give_order(ORDER_EXIT);
    }
    ct_futex_wait(&order, ORDER_NONE, own_ns < most_ns ? own_ns : most_ns);
    uint32_t wake = ORDER_WAKE;
    atomic_compare_exchange_strong(&order, &wake, ORDER_NONE);
    if (must_end_at_once())
        return CT_GPU_EXIT;
    return is_abandoned() || left_ns() == 0 ? CT_GPU_STOP : CT_GPU_GO_ON;
}

static void host_wake(void)
{
    uint32_t none = ORDER_NONE;
    if (atomic_compare_exchange_strong(&order, &none, ORDER_WAKE))
        ct_futex_wake(&order);
}

static bool host_note(uint32_t correlation)
{
    const uint32_t now = atomic_load_explicit(&phase, memory_order_acquire);
    const bool is_on = now == PHASE_STARTING || now == PHASE_ON;
    const uint32_t function =
        ct_correlation_note(is_on && correlation ? ct_correlation(atomic_load(&recordings), correlation) : 0);
    return function && function < CT_FUNCTIONS_MAX &&
           ct_segment_directory(place)[function].layer == CT_LAYER_DRIVER;
}

static bool host_hold_calls(void *const contexts[], size_t count)
{
    return !is_abandoned() && ct_gpu_gate_close(contexts, count);
}

/* CUPTI 13.0 crashes when a graph is launched that was instantiated before CUPTI began to record whole graphs
 * (seen with CUPTI alone on an H100, driver 580.159.04). So there must be no graph yet. */
static uint32_t host_graphs(void)
{
    if (!is_setting(CT_GPU_WHOLE_TEXT))
        return CT_GPU_FORM_NODES;
    return is_early && atomic_load(&is_held) ? CT_GPU_FORM_WHOLE : CT_GPU_FORM_LATE;
}

/* Returns whether the process has called a function whose name begins with an element of `begins`, which ends
 * with NULL. */
static bool has_function(const char *const begins[])
{
    const struct ct_function *function = ct_segment_directory(place);
    const uint32_t count = atomic_load_explicit(&place->functions, memory_order_acquire);
    for (uint32_t i = 0; i < count && i < CT_FUNCTIONS_MAX; i++) {
        for (const char *const *begin = begins; *begin; begin++) {
            if (strncmp(function[i].name, *begin, strlen(*begin)) == 0)
                return true;
        }
    }
    return false;
}

static bool host_has_graphs(void)
{
    static const char *const begins[] = { "cuGraphCreate", "cuGraphInstantiate", "cuGraphLaunch", NULL };
    return has_function(begins);
}

static bool host_has_contexts(void)
{
    static const char *const begins[] = { "cuCtxAttach",      "cuCtxCreate",      "cuGLCtxCreate",
                                          "cuGreenCtxCreate", "cuVDPAUCtxCreate", NULL };
    return has_function(begins);
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
    .setting = ct_setting,
    .now = host_now,
    .wait = host_wait,
    .wake = host_wake,
    .report = host_report,
    .text = ct_gpu_lane_text,
    .release = ct_gpu_lane_release,
    .work = ct_gpu_lane_work,
    .drop = ct_gpu_lane_drop,
    .note = host_note,
    .graphs = host_graphs,
    .has_graphs = host_has_graphs,
    .has_contexts = host_has_contexts,
    .hold_calls = host_hold_calls,
    .resume_calls = ct_gpu_gate_release,
    .is_exiting = must_end_at_once,
    .leave = ct_gpu_end,
};

static void record(void)
{
    epoch = ct_process_epoch();
    place = ct_process_current();
    if (!place || follow_at_once(place))
        return;
    end_ns = atomic_load_explicit(&place->gpu_until_ns, memory_order_relaxed);
    is_early = recordings++ == 0 && is_setting(CT_GPU_WHOLE_TEXT) && !ct_gpu_driver_is_initialised();
    report(place, CT_GPU_STARTING, 0, NULL);
    ct_gpu_record_function *function = ct_gpu_library_load();
    ct_gpu_lane_begin(recordings);
    if (function)
        function(&host);
    else
        host_report(CT_GPU_NO_LIBRARY, 0, NULL);
    ct_gpu_lane_end();
}

/* Changes IDLE to STARTING, unless threads may not be created. The operations on `phase` and `closed` are
 * sequentially consistent, so either this function or ct_gpu_close() sees what the other has done. */
static bool leave_idle(void)
{
    uint32_t idle = PHASE_IDLE;
    if (!atomic_compare_exchange_strong(&phase, &idle, PHASE_STARTING))
        return false;
    if (atomic_load(&closed) == 0)
        return true;
    set_phase(PHASE_IDLE);
    return false;
}

/* Returns true if a recording must begin, because of a request made after the last one began to end. Other
 * threads leave such requests to this thread until it is idle. */
static bool must_begin_again(void)
{
    const struct ct_segment *segment = ct_process_current();
    return segment && !ct_gpu_awaits_driver() && !is_followed(segment) && leave_idle();
}

/* Leaves the request of a recording that ct_gpu_close() has ended to a later call. */
static void leave_request(void)
{
    if (place && !is_abandoned())
        note_followed(place, 0);
}

static void *run(void *unused)
{
    (void)unused;
    ct_self = &ct_untraced;
    atomic_store(&thread_id, (int32_t)syscall(SYS_gettid));
    prctl(PR_SET_NAME, THREAD_NAME, 0, 0, 0);
    do {
        record();
        uint32_t close = ORDER_CLOSE;
        if (atomic_compare_exchange_strong(&order, &close, ORDER_NONE))
            leave_request();
        else if (atomic_load(&order) == ORDER_EXIT) {
            set_phase(PHASE_OVER);
            break;
        }
        set_phase(PHASE_IDLE);
    } while (must_begin_again());
    CT_TEST_POINT("gpu.idle");
    ct_gpu_last_end();
    return NULL;
}

/* Returns an errno. */
static int create_thread(void)
{
    typedef int detach_function(pthread_t thread);
    detach_function *const detach = (detach_function *)(uintptr_t)ct_symbol_of_library("pthread_detach");
    pthread_t thread;
    const int error = detach ? ct_gpu_last_create(&thread, run) : ENOSYS;
    if (!error)
        detach(thread);
    return error;
}

/* ---- other threads ---- */

uint64_t ct_gpu_first_request(uint64_t session_ns)
{
    const bool is_set = is_setting(CT_GPU_NODES_TEXT) || is_setting(CT_GPU_WHOLE_TEXT);
    return is_set ? ct_monotonic_ns() + CT_GPU_ENDLESS_NS : session_ns;
}

void ct_gpu_await_driver(void)
{
    atomic_store_explicit(&ct_gpu_is_awaiting, true, memory_order_relaxed);
}

static void end_with_last_thread(void);

/* Begins a recording unless there is one. */
static void begin(struct ct_segment *segment)
{
    if (!leave_idle())
        return;
    ct_thread_watch_end(CT_THREAD_GPU, end_with_last_thread);
    const int error = create_thread();
    if (error) {
        const uint64_t request_ns = atomic_load_explicit(&segment->gpu_until_ns, memory_order_relaxed);
        report(segment, CT_GPU_NO_THREAD, (uint32_t)error, NULL);
        note_followed(segment, request_ns);
        set_phase(PHASE_IDLE);
    }
}

/* Leaves a request that needs a thread to a later call if this call is in a context where the program could
 * not create a thread. Until the request is followed, the collector makes every call check for it. */
static void follow(struct ct_segment *segment, bool must_wait)
{
    CT_ERROR_GUARD;
    if (atomic_load(&closed) != 0 || follow_at_once(segment) || !ct_stack_is_plain() || !ct_system_begin())
        return;
    if (ct_fork_is_borrower()) { /* a thread that the child of vfork() creates ends with the child */
        ct_system_end();
        return;
    }
    if (must_wait)
        atomic_store(&is_held, true);
    begin(segment);
    if (must_wait) {
        wait_for_phase(PHASE_STARTING, PHASE_STARTING, ct_now_ns() + CT_GPU_PATIENCE_NS);
        atomic_store(&is_held, false);
    }
    ct_system_end();
}

void ct_gpu_first_call(void)
{
    struct ct_segment *segment = ct_process_current();
    /* The recording's thread would inherit the prohibition. */
    if (!segment || ct_counter_is_denied() || !atomic_exchange(&ct_gpu_is_awaiting, false))
        return;
    const bool is_first = !atomic_exchange(&has_called, true);
    if (!is_followed(segment))
        follow(segment, is_first);
}

void ct_gpu_follow(struct ct_segment *segment)
{
    const uint32_t now = atomic_load_explicit(&phase, memory_order_relaxed);
    if (!is_followed(segment) && (now == PHASE_IDLE || now == PHASE_OVER) && !ct_gpu_awaits_driver())
        follow(segment, false);
}

/* Ends the recording, and waits for its thread at most until `until_ns`. */
static void end(enum order given, uint64_t until_ns)
{
    give_order(given);
    ct_gpu_gate_abort();
    wait_for_phase(PHASE_STARTING, PHASE_ON, until_ns);
}

static bool is_recording(void)
{
    const uint32_t now = atomic_load(&phase);
    return now == PHASE_STARTING || now == PHASE_ON;
}

void ct_gpu_end(void)
{
    if (!is_recording() || ct_self == &ct_untraced || !ct_system_begin())
        return;
    CT_ERROR_GUARD;
    /* Several exit handlers call this function. Together, they wait no longer than one would. */
    static _Atomic uint64_t until_ns;
    uint64_t none = 0;
    atomic_compare_exchange_strong(&until_ns, &none, ct_now_ns() + CT_GPU_PATIENCE_NS);
    end(ORDER_EXIT, atomic_load(&until_ns));
    ct_system_end();
}

/* Returns whether the thread has another name than the recording's. The recording's thread may have ended,
 * and its ID may have been given to a thread of the program. */
static bool is_other(int32_t tid)
{
    char path[64], name[32];
    snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)tid);
    return ct_descriptor_read(path, name, sizeof(name)) > 0 && strcmp(name, THREAD_NAME "\n") != 0;
}

/* The C library counts a thread until shortly before the kernel does. */
static bool has_thread(void)
{
    const int32_t tid = atomic_load(&thread_id);
    return syscall(SYS_tgkill, ct_fork_pid(), tid, 0) == 0 && !is_other(tid);
}

/* Ends the recording, and waits until its thread has ended. If CUPTI hangs, only the first call waits. */
static void end_thread(enum order given)
{
    static _Atomic int32_t hanging_id;
    if ((!is_recording() && atomic_load(&thread_id) == 0) || ct_self == &ct_untraced ||
        ct_fork_memory() != CT_MEMORY_OWN || !ct_system_begin())
        return;
    CT_ERROR_GUARD;
    const int32_t tid = atomic_load(&thread_id);
    if (tid == 0 || atomic_load(&hanging_id) != tid || !has_thread()) {
        const uint64_t until_ns = ct_now_ns() + CT_GPU_PATIENCE_NS;
        if (is_recording())
            end(given, until_ns);
        bool is_left = true;
        while ((is_left = has_thread()) && ct_now_ns() < until_ns)
            clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = 100000 }, NULL);
        if (is_left)
            CT_TEST_POINT("gpu.hangs");
        atomic_store(&hanging_id, is_left ? tid : 0);
    }
    ct_system_end();
}

void ct_gpu_quit(void)
{
    end_thread(ORDER_EXIT);
}

/* Ends the recording with the program's last thread, because its thread would otherwise keep the process. The
 * C library would also run the program's exit handlers in that thread, which has no context of the driver. A
 * thread that hangs in CUPTI is not waited for. The C library ends a process with status 0 after its last
 * thread. */
static void end_with_last_thread(void)
{
    typedef void exit_function(int status);
    if ((!is_recording() && atomic_load(&thread_id) == 0) || !ct_system_begin())
        return;
    const bool is_last = ct_program_threads(ct_fork_pid()) == 2 && (is_recording() || has_thread());
    ct_system_end();
    if (!is_last)
        return;
    ct_gpu_quit();
    exit_function *const end_process = (exit_function *)(uintptr_t)ct_symbol_of_library("exit");
    if (end_process && has_thread())
        end_process(EXIT_SUCCESS);
}

void ct_gpu_close(void)
{
    atomic_fetch_add(&closed, 1);
    end_thread(ORDER_CLOSE);
}

void ct_gpu_open(void)
{
    atomic_fetch_sub(&closed, 1);
}

void ct_gpu_forget(void)
{
    if (atomic_load(&phase) != PHASE_IDLE || recordings > 0)
        atomic_store(&phase, PHASE_OVER);
    atomic_store(&ct_gpu_is_awaiting, false);
    atomic_store(&order, ORDER_NONE);
    atomic_store(&thread_id, 0);
    ct_gpu_gate_forget();
    ct_gpu_lane_forget();
}
