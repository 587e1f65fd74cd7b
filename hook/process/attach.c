#include "attach.h"

#include "current.h"
#include "driver_functions.h"
#include "error_guard.h"
#include "find_daemon.h"
#include "fork.h"
#include "gpu.h"
#include "long_call.h"
#include "machine.h"
#include "producer_pool.h"
#include "row_selection.h"
#include "segment_file.h"
#include "system.h"
#include "test_point.h"
#include "thread.h"
#include "unrecorded.h"

enum { LOOK_INTERVAL_NS = 1000000000 };
static _Atomic uint64_t next_look_ns; /* do not look for a daemon before this CLOCK_MONOTONIC_COARSE time */
static _Atomic bool asleep;           /* no visit is recording (visit.c), so do not look for a daemon */

/* Calls made after this time may be missing from all segments. The time is set by the first search that finds
 * no daemon, and whenever a segment ends. 0 means that no calls are missing. */
static uint64_t absent_ns;

bool ct_attach_is_due(void)
{
    return !atomic_load_explicit(&asleep, memory_order_acquire) &&
           ct_coarse_ns() >= atomic_load_explicit(&next_look_ns, memory_order_relaxed);
}

/* Returns the distance of ct_self from the thread pointer, which is the same in all threads, because the
 * hook's thread-local variables are in static TLS. Returns 0 if the distance is implausible for static
 * TLS. */
static int32_t producer_distance(void)
{
    const intptr_t distance = (intptr_t)&ct_self - (intptr_t)ct_thread_pointer();
    return distance == (int32_t)distance ? (int32_t)distance : 0;
}

/* Reports that the process has no segment, to the first daemon that it cannot use. A daemon is notified even
 * if its files are out of reach, because in a container with another folder under the same name, and in a
 * folder that the process may not search, only the daemon's socket shows that there is one. Returns false if
 * there is no such daemon. */
static bool report_obstacles(const struct ct_session *session, const struct ct_requested *requested,
                             uint64_t exec_ns)
{
    for (int i = 0; i < CT_OBSTACLES; i++) {
        const struct ct_obstacle *obstacle = &requested->obstacle[i];
        const enum ct_unrecorded_cause cause =
            obstacle->is_user ? CT_UNRECORDED_USER : ct_unrecorded_cause_of(obstacle->error);
        if (obstacle->error && ct_unrecorded_report(session, obstacle->uid, cause, obstacle->error, exec_ns))
            return true;
    }
    return false;
}

/* Reports to the daemon that was found. If it serves the system session, it belongs to root, and the user's
 * own daemon, which the process cannot use, takes precedence. */
static void report_no_segment(const struct ct_session *session, const struct ct_requested *requested,
                              enum ct_unrecorded_cause cause, int error, uint64_t exec_ns)
{
    if (!report_obstacles(session, requested, exec_ns))
        ct_unrecorded_report(session, requested->system ? 0 : session->uid, cause, error, exec_ns);
}

/* Creates a segment for the running daemon, if there is one. Requires the process lock. */
static struct ct_segment *make_segment(uint64_t exec_ns)
{
    struct ct_session session;
    struct ct_requested requested = { 0 };
    struct ct_control *control = ct_daemon_session(&session) ? ct_daemon_find(&session, &requested) : NULL;
    CT_TEST_POINT("attach.looked");
    if (!control) {
        report_obstacles(&session, &requested, exec_ns);
        return NULL;
    }
    if (ct_counter_is_denied()) {
        report_no_segment(&session, &requested, CT_UNRECORDED_CLOCK, EPERM, exec_ns);
        ct_daemon_drop(control);
        return NULL;
    }
    ct_clock_is_counter = requested.clock_is_counter;
    ct_long_begin();
    struct ct_segment *segment = ct_segment_create(&(struct ct_segment_plan){
        .session = &session,
        .requested = &requested,
        .pid = ct_fork_pid(),
        .exec_ns = exec_ns,
        .absent_ns = absent_ns,
        .producer = producer_distance(),
        .gpu_until_ns = ct_gpu_first_request(requested.gpu_until_ns),
    });
    ct_process_count_epoch();
    if (!segment)
        report_no_segment(&session, &requested, ct_unrecorded_cause_of(ct_segment_error()),
                          ct_segment_error(), exec_ns);
    if (!segment || !ct_daemon_take(control, &requested)) {
        ct_daemon_drop(control);
        return NULL;
    }
    absent_ns = 0;
    ct_unrecorded_end();
    CT_TEST_POINT("attach.created");
    ct_rows_forget_numbers();
    ct_selection_begin(segment);
    ct_driver_tell(segment);
    CT_TEST_POINT("attach.selected");
    ct_process_set_current(segment);
    CT_TEST_POINT("attach.current");
    ct_gpu_await_driver();
    if (!requested.system)
        atomic_fetch_add_explicit(&ct_control->segments, 1, memory_order_release);
    CT_TEST_POINT("attach.counted");
    ct_daemon_ring();
    return segment;
}

struct ct_segment *ct_attach(uint64_t exec_ns)
{
    if (!ct_process_lock())
        return NULL;
    struct ct_segment *segment = ct_process_current();
    if (!segment && ct_attach_is_due()) {
        segment = make_segment(exec_ns);
        if (!segment) {
            if (absent_ns == 0)
                absent_ns = ct_monotonic_ns();
            atomic_store_explicit(&next_look_ns, ct_coarse_ns() + LOOK_INTERVAL_NS, memory_order_relaxed);
        }
    }
    ct_process_unlock();
    return segment;
}

/* The segment that the hook is leaving, or NULL. Its lanes are abandoned a few at a time. */
static struct {
    struct ct_segment *segment;
    uint32_t epoch, next;
} leaving;

/* Abandons the current segment. Other threads may still be writing to it, even if no process reads it any
 * more. Requires the process lock. */
static void abandon(void)
{
    ct_process_set_current(NULL);
    absent_ns = ct_monotonic_ns();
    if (ct_system_begin()) {
        uint32_t next = 0;
        ct_producers_abandon(ct_process_epoch(), &next, UINT32_MAX);
        ct_system_end();
    }
    ct_process_count_epoch();
}

void ct_detach(void)
{
    CT_ERROR_GUARD;
    CT_TEST_POINT("attach.detaching");
    /* Without the lock, another thread could create a segment for the next daemon after the check, and
     * abandon() would abandon the new segment. Another thread could also add a lane to this segment after its
     * lanes had been abandoned. */
    if (ct_process_lock()) {
        if (ct_process_current() && ct_self->epoch == ct_process_epoch())
            abandon();
        ct_thread_let_go();
        ct_process_unlock();
    } else {
        ct_thread_forget();
    }
    CT_TEST_POINT("attach.detached");
}

void ct_attach_apply(struct ct_producer *producer)
{
    CT_TEST_POINT("attach.waking");
    const uint64_t wake = ct_lane_wake(producer->lane);
    const uint32_t flags = atomic_load_explicit(&producer->segment->flags, memory_order_relaxed);
    if (producer->epoch != ct_process_epoch() || flags & CT_SEGMENT_DETACHED) {
        ct_detach();
        return;
    }
    ct_thread_watch_again();
    ct_selection_follow(producer->segment);
    ct_gpu_follow(producer->segment);
    if (ct_daemon_ring() && wake != 0 && producer->position >= wake)
        ct_lane_rung(producer->lane, wake);
    CT_TEST_POINT("attach.woken");
}

void ct_attach_sleep(void)
{
    atomic_store_explicit(&asleep, true, memory_order_release);
}

void ct_attach_wake(uint64_t missed_since_ns)
{
    if (absent_ns == 0)
        absent_ns = missed_since_ns;
    atomic_store_explicit(&next_look_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&asleep, false, memory_order_release);
}

/* Counts the epoch first. Other threads run between two calls, and must notice that their lanes are being
 * abandoned. */
bool ct_attach_leave(uint32_t lanes_most)
{
    struct ct_segment *segment = ct_process_current();
    ct_attach_sleep();
    if (segment) {
        ct_process_set_current(NULL);
        absent_ns = ct_monotonic_ns();
        leaving.segment = segment;
        leaving.epoch = ct_process_epoch();
        leaving.next = 0;
        ct_process_count_epoch();
    }
    if (!leaving.segment)
        return true;
    if (ct_system_begin()) {
        const bool is_last = ct_producers_abandon(leaving.epoch, &leaving.next, lanes_most);
        ct_system_end();
        if (!is_last)
            return false;
    }
    atomic_fetch_or_explicit(&leaving.segment->flags, CT_SEGMENT_LEFT, memory_order_release);
    ct_daemon_ring();
    ct_segment_abandon();
    leaving.segment = NULL;
    return true;
}

bool ct_attach_is_leaving(void)
{
    return leaving.segment != NULL;
}

void ct_attach_forget(void)
{
    leaving.segment = NULL;
    ct_process_set_current(NULL);
    ct_process_count_epoch();
    atomic_store(&next_look_ns, 0);
    absent_ns = 0;
}
