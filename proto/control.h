/* The control segment: what a session's daemon and its traced processes share. One file in /dev/shm named by
 * ct_session_control_path(), created by the daemon and mapped by every hook of the session.
 *
 * The system's session belongs to all users: its control segment is root's, and users can read it and no
 * more. They ring by a datagram to its bell (ct_session_bell_path()), and their segments are found by the
 * events of files.
 *
 * A daemon is alive while it holds a write lock on the file (an open-file-description lock, which the kernel
 * drops with its holder); the file alone proves nothing. Hooks ask with F_GETLK. A tool that clears up what a
 * killed daemon left holds the lock as a process, which F_GETLK shows: nobody takes it for a daemon, and a
 * daemon that starts waits. */
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

/* Every second anchor goes to the first sixteen places, every second of the others to the next, and so on:
 * sixteen of the last 32 stay, of the last 64, … and the past gets coarser, and is never forgotten. None is
 * moved, so that a daemon that is killed leaves at most one place half written, that of the number `anchors`.
 */
static inline uint32_t ct_anchor_place(uint64_t number)
{
    enum { EACH = 16, LEVELS = CT_ANCHORS / EACH };
    if (number == 0)
        return CT_ANCHORS - 1; /* the first stays: nothing else comes here in centuries */
    const uint64_t n = number + 1;
    const int zeros = __builtin_ctzll(n), level = zeros < LEVELS ? zeros : LEVELS - 1;
    return (uint32_t)level * EACH + (uint32_t)((n >> level >> 1) % EACH);
}

struct ct_control {
    uint64_t magic;
    uint32_t version; /* CT_PROTO_VERSION */
    uint32_t bytes;   /* sizeof(struct ct_control) */

    /* The daemon's wishes for new segments. */
    uint64_t ring_bytes;
    uint32_t clock; /* enum ct_clock_kind: decided once for the session */
    int32_t daemon_pid;
    _Atomic uint32_t
        closing; /* the daemon is leaving: hooks take it for gone, while it still holds the lock */
    /* Counts changes of `selection`, which the daemon writes between two additions: the count is odd
     * meanwhile. 0 until the daemon was asked for anything. */
    _Atomic uint32_t selections;
    uint32_t system; /* 1: the system's session */
    uint32_t pad_trace;
    /* Identifies the trace that the daemon writes: tools find the session of a trace by it
     * (ct_trace_identity() in schema/trace_files.h). */
    uint64_t trace;
    uint8_t pad0[8];

    /* The doorbell. A producer that finds `sleeping` set takes it back to 0 and rings: one ring a sleep. In
     * the system's session it is another number for each sleep, and each process rings once for each. */
    _Atomic uint32_t sleeping;
    /* Counts segments created: the collector looks for them when it changed. 0 in the system's session. */
    _Atomic uint32_t segments;
    uint8_t pad1[56];
    _Atomic uint32_t doorbell; /* counts rings; see ct_doorbell_ring() */
    uint8_t pad2[60];

    /* Anchors, written by the daemon alone, so that a restarted one knows the past: how many were written, of
     * which anchor number n is in anchor[ct_anchor_place(n)] unless a later one has taken its place. */
    _Atomic uint64_t anchors;
    struct ct_anchor anchor[CT_ANCHORS];
    struct ct_selection selection;
};

/* A word that the kernel knows by its place, and no semaphore: the C library ends the program whose semaphore
 * somebody else has written into. Whatever stands there, a ring adds one and asks the kernel to wake. */
static inline void ct_doorbell_ring(_Atomic uint32_t *doorbell)
{
    atomic_fetch_add_explicit(doorbell, 1, memory_order_release);
    syscall(SYS_futex, doorbell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Waits until the bell has rung since it was `heard`, for `ns` (less than a second) at most. */
static inline void ct_doorbell_wait(_Atomic uint32_t *doorbell, uint32_t heard, long ns)
{
    const struct timespec patience = { .tv_nsec = ns };
    syscall(SYS_futex, doorbell, FUTEX_WAIT, heard, &patience, NULL, 0);
}
static_assert(offsetof(struct ct_control, sleeping) == 64, "ct_control");

#endif
