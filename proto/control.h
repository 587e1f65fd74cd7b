/* The control segment: shared between a session's daemon and its traced processes. One file in /dev/shm named
 * by ct_session_control_path(), created by the daemon and mapped by every hook of the session.
 *
 * The system's session belongs to all users. Its control segment is owned by root, and users can only read
 * it. They ring by sending a datagram to its bell (ct_session_bell_path()). Their segments are found by file
 * events.
 *
 * A daemon is alive while it holds a write lock on the file (an open-file-description lock, which the kernel
 * drops with its holder). The file's existence proves nothing. Hooks check with F_GETLK. A tool that cleans
 * up after a killed daemon takes the lock as a process, which F_GETLK reports. Hooks therefore do not mistake
 * it for a daemon, and a starting daemon waits for it. */
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

/* Every second anchor is stored in the first sixteen places, every second of the remaining ones in the next
 * sixteen, and so on. Sixteen of the last 32 anchors stay, sixteen of the last 64, and so on: the past gets
 * coarser, but is never forgotten. No anchor is moved. A daemon that is killed leaves at most one place half
 * written, the place of anchor number `anchors`. */
static inline uint32_t ct_anchor_place(uint64_t number)
{
    enum { EACH = 16, LEVELS = CT_ANCHORS / EACH };
    if (number == 0)
        return CT_ANCHORS - 1; /* the first one stays: no other gets here in centuries */
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
    uint32_t clock; /* enum ct_clock_kind: decided once for the session */
    int32_t daemon_pid;
    /* The daemon is leaving: hooks treat it as gone although it still holds the lock. */
    _Atomic uint32_t closing;
    /* Counts changes of `selection`, twice each: the daemon writes between two additions, so the count is odd
     * during the write. 0 until a client has requested a selection. */
    _Atomic uint32_t selections;
    uint32_t system; /* 1: the system's session */
    uint32_t pad_trace;
    /* Identifies the trace that the daemon writes. Tools find a trace's session by it (ct_trace_identity() in
     * schema/trace_files.h). */
    uint64_t trace;
    uint8_t pad0[8];

    /* The doorbell. A producer that finds `sleeping` set resets it to 0 and rings, once per sleep. In the
     * system's session it has another value for each sleep, and each process rings once for each. */
    _Atomic uint32_t sleeping;
    /* Counts segments created. The collector looks for new segments if it has changed. 0 in the system's
     * session. */
    _Atomic uint32_t segments;
    uint8_t pad1[56];
    _Atomic uint32_t doorbell; /* counts rings; see ct_doorbell_ring() */
    uint8_t pad2[60];

    /* Anchors, written only by the daemon, so that a restarted daemon knows the past. `anchors` is the number
     * written. Anchor number n is in anchor[ct_anchor_place(n)], unless a later one has replaced it. */
    _Atomic uint64_t anchors;
    struct ct_anchor anchor[CT_ANCHORS];
    struct ct_selection selection;
};

/* The doorbell is a futex, not a semaphore: the C library aborts a program if another process has corrupted
 * its semaphore. Ringing adds one to any value and makes the kernel wake the waiter. */
static inline void ct_doorbell_ring(_Atomic uint32_t *doorbell)
{
    atomic_fetch_add_explicit(doorbell, 1, memory_order_release);
    syscall(SYS_futex, doorbell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Waits until the bell has rung since its value was `heard`, for at most `ns` (less than a second). */
static inline void ct_doorbell_wait(_Atomic uint32_t *doorbell, uint32_t heard, long ns)
{
    const struct timespec patience = { .tv_nsec = ns };
    syscall(SYS_futex, doorbell, FUTEX_WAIT, heard, &patience, NULL, 0);
}
static_assert(offsetof(struct ct_control, sleeping) == 64, "ct_control");

#endif
