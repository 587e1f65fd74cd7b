/* The control segment, which a session's daemon shares with its traced processes. It is a single file in
 * /dev/shm, named by ct_session_control_path(). The daemon creates the file, and every hook in the session
 * maps it.
 *
 * The system session belongs to all users. Its control segment is owned by root, and users can only read it.
 * Users' processes wake the daemon by sending a datagram to the session's bell (ct_session_bell_path()). The
 * daemon finds users' segments by watching for file events.
 *
 * A daemon is alive as long as it holds a write lock on the control segment's file. The file's existence
 * alone proves nothing. The lock is an open-file-description lock, which the kernel drops when the holder
 * exits. Hooks check the lock with F_GETLK. A tool that cleans up after a killed daemon takes a process lock
 * instead, so that F_GETLK reports the tool's pid. Hooks therefore do not mistake the tool for a daemon, and
 * a starting daemon waits until the tool is done. It also waits for a daemon that is stopping or has been
 * killed (collector/loop/control_lock.h). */
#ifndef CT_PROTO_CONTROL_H
#define CT_PROTO_CONTROL_H

#include "clock.h"
#include "selection.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CT_CONTROL_MAGIC UINT64_C(0x314c544354445543) /* the bytes "CUDTCTL1" */

/* The values of `stays` in a daemon's status. */
#define CT_STAYS_WHILE_USED    "while it is used"
#define CT_STAYS_UNTIL_STOPPED "until it is stopped"

enum { CT_ANCHORS = 512 };

/* Every second anchor is stored in the first sixteen places, every second of the remaining anchors in the
 * next sixteen, and so on. Thus sixteen of the last 32 anchors are kept, another sixteen of the last 64, and
 * so on. Older anchors become sparser, but still cover the whole past. No anchor is moved. If the daemon is
 * killed, at most one place is half-written, the place for anchor number `anchors`. */
static inline uint32_t ct_anchor_place(uint64_t number)
{
    enum { EACH = 16, LEVELS = CT_ANCHORS / EACH };
    if (number == 0)
        return CT_ANCHORS - 1; /* the first anchor stays, since no other anchor will need this place for
                                * centuries */
    const uint64_t n = number + 1;
    const int zeros = __builtin_ctzll(n), level = zeros < LEVELS ? zeros : LEVELS - 1;
    return (uint32_t)level * EACH + (uint32_t)((n >> level >> 1) % EACH);
}

struct ct_control {
    uint64_t magic;
    uint32_t version; /* CT_PROTO_VERSION */
    uint32_t bytes;   /* sizeof(struct ct_control) */

    /* The daemon's settings for new segments. */
    uint64_t ring_bytes;
    uint32_t clock; /* enum ct_clock_kind; decided once per session */
    int32_t daemon_pid;
    /* Set when the daemon is about to exit. Hooks then ignore the daemon, even though it still holds the
     * lock. */
    _Atomic uint32_t closing;
    /* Counts changes to `selection`. The daemon adds 1 before and after each change, so the count is odd
     * during a change. It is 0 until a client has requested a selection. */
    _Atomic uint32_t selections;
    uint32_t system; /* 1: the system session */
    uint32_t pad_trace;
    /* Identifies the trace written by the daemon, so that tools can find a trace's session
     * (ct_trace_identity() in schema/trace_files.h). */
    uint64_t trace;
    /* The last request to record GPU work in all of the session's processes. See `gpu_until_ns` in struct
     * ct_segment. */
    _Atomic uint64_t gpu_until_ns;

    /* The doorbell. `sleeping` is nonzero while the daemon sleeps. A producer that finds `sleeping` set
     * resets it to 0 and rings, so the doorbell is rung once per sleep. In the system session, `sleeping` has
     * a different value for each sleep, and each process rings once per sleep. */
    _Atomic uint32_t sleeping;
    /* Counts the segments created. The collector looks for new segments when the count has changed. In the
     * system session, the count stays 0. */
    _Atomic uint32_t segments;
    uint8_t pad1[56];
    _Atomic uint32_t doorbell; /* counts rings; see ct_doorbell_ring() */
    uint8_t pad2[60];

    /* Anchors, written only by the daemon. They are kept here so that a restarted daemon has its
     * predecessor's anchors. `anchors` is the number of anchors written. Anchor number n is in
     * anchor[ct_anchor_place(n)], unless a later anchor has replaced it. */
    _Atomic uint64_t anchors;
    struct ct_anchor anchor[CT_ANCHORS];
    struct ct_selection selection;
};

/* Rings the doorbell: adds 1 to its value, whatever that is, and makes the kernel wake the waiter. The
 * doorbell is a futex and not a semaphore, since the C library aborts a program if another process has
 * corrupted its semaphore. */
static inline void ct_doorbell_ring(_Atomic uint32_t *doorbell)
{
    atomic_fetch_add_explicit(doorbell, 1, memory_order_release);
    syscall(SYS_futex, doorbell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Waits until the doorbell's value differs from `heard`, but at most `ns` nanoseconds (less than a
 * second). */
static inline void ct_doorbell_wait(_Atomic uint32_t *doorbell, uint32_t heard, long ns)
{
    const struct timespec patience = { .tv_nsec = ns };
    syscall(SYS_futex, doorbell, FUTEX_WAIT, heard, &patience, NULL, 0);
}
static_assert(offsetof(struct ct_control, sleeping) == 64, "ct_control");

#endif
