/* A segment is all the memory that a process shares with the collector, in a single file in /dev/shm. The
 * hook creates the segment at the process's first CUDA call if a daemon serves its session, and the collector
 * removes it. Another process may create a segment on the process's behalf (enum ct_maker).
 *
 *   0                    struct ct_segment
 *   CT_DIRECTORY_OFFSET  struct ct_function[function_slots]: the functions this process has called
 *   lane_offset          lane 0: struct ct_lane, then its shortest ring; lane 1; …
 *   after all of these   the longer rings of lane 0, of lane 1, …: ct_segment_ring_offset()
 *
 * The file is sparse. The hook allocates the directory page by page, and rings as they are needed. Before
 * accessing the memory, it calls posix_fallocate(), so that a full /dev/shm results in an error code and not
 * in a SIGBUS. The collector removes memory from the file that lanes no longer need (lane.h).
 *
 * The collector reads the geometry once, checks it, and then uses its own copy. */
#ifndef CT_PROTO_SEGMENT_H
#define CT_PROTO_SEGMENT_H

#include "clock.h"
#include "lane.h"
#include "names.h"

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#define CT_SEGMENT_MAGIC UINT64_C(0x3147455354445543) /* the bytes "CUDTSEG1" */

enum {
    CT_PROTO_VERSION = 16, /* incremented with every change to the layouts in this folder */
    CT_DIRECTORY_OFFSET = 4096,
    CT_FUNCTIONS_MAX = 2048,
    CT_FUNCTION_NAME_MAX = 71,
    CT_LANES_MAX = 4096,
    CT_CHUNK_BYTES = CT_RING_FIRST_SLOTS * CT_SLOT_BYTES, /* the shortest ring */
    CT_RING_BYTES_MIN = CT_CHUNK_BYTES,
    CT_RING_BYTES_MAX = 1024 * 1024 * 1024,
    CT_RING_BYTES_DEFAULT = 512 * 1024 * 1024, /* ten million calls, if there is memory */
};

/* A directory entry. The hook writes an entry before the first record that contains its index. Afterwards,
 * only `lost_*` and `skipped_*` change, by atomic addition. They count calls that cannot be counted in a lane
 * (`drops` in struct ct_lane), because the thread has no lane or does not hold it, or because the lane has no
 * room for the function. Entry 0 represents all functions that do not fit in the directory. */
struct ct_function {
    char name[CT_FUNCTION_NAME_MAX + 1];
    uint8_t layer; /* enum ct_layer */
    uint8_t reserved[3];
    uint32_t category; /* enum ct_category */
    _Atomic uint64_t lost_calls, lost_ticks, lost_bytes;
    _Atomic uint64_t skipped_calls, skipped_ticks, skipped_bytes;
};
static_assert(sizeof(struct ct_function) == 128, "ct_function");

/* The process that writes a segment. */
enum ct_maker {
    CT_MAKER_HOOK = 0, /* the process that the segment describes */
    /* A probe: another process, which watches the process described by the segment. It writes records after
     * the calls have returned, even after the watched process has exited. */
    CT_MAKER_PROBE = 1,
    /* A probe that accompanies the hook. Its segment contains only the layers `kernel` and `hook`. */
    CT_MAKER_COMPANION = 2,
    CT_MAKER_MACHINE = 3, /* a probe, which the segment describes; contains events of the whole machine */
    CT_MAKER_COUNT
};

/* Flags that the hook, the probe and the collector set, most of them to end the use of a segment. */
enum ct_segment_flags {
    CT_SEGMENT_EXITING = 1,  /* hook: exit handlers have run */
    CT_SEGMENT_DETACHED = 2, /* collector: the daemon is stopping; the hook must drop the segment */
    /* Hook: it has left the process, which keeps running. Probe: all records have been written. Nothing is
     * written to the segment once this flag is set. */
    CT_SEGMENT_LEFT = 4,
    /* Collector: the trace has a row for the segment, so the segment is read even after the process has
     * ended. */
    CT_SEGMENT_KNOWN = 8,
    CT_SEGMENT_COPIED = 16, /* probe: some code of the driver has no breakpoints: calls are missing */
};

/* The ways of routing calls to a driver function through its stub. The environment variable named by
 * CT_INTERCEPT_ENV selects a way. */
#define CT_INTERCEPT_ENV "CUDATRACE_WAY"
enum ct_intercept {
    CT_INTERCEPT_NAMES, /* lookups of the function return the stub, and objects are linked to the stub */
    CT_INTERCEPT_SLOTS, /* the driver itself calls the stub, through its table of entry points */
    CT_INTERCEPT_COUNT
};
#define CT_INTERCEPT_NAMES_TEXT "names"
#define CT_INTERCEPT_SLOTS_TEXT "slots"

struct ct_segment {
    uint64_t magic;
    uint32_t version;      /* CT_PROTO_VERSION */
    uint32_t header_bytes; /* sizeof(struct ct_segment) */

    /* Geometry: constant. */
    uint32_t function_slots; /* capacity of the directory, in entries */
    uint32_t lane_slots;     /* maximum number of lanes */
    uint64_t lane_offset;    /* bytes */
    uint64_t lane_stride;    /* bytes: CT_LANE_HEADER_BYTES + CT_CHUNK_BYTES */
    uint64_t ring_bytes;     /* size of the longest ring: a power of two, CT_RING_BYTES_MIN to
                              * CT_RING_BYTES_MAX */

    /* Identity: constant. */
    int32_t pid; /* in the hook's pid namespace */
    uint32_t uid;
    uint64_t process_start; /* field 22 of /proc/self/stat; together with the pid, identifies the process */
    uint64_t exec_ns;       /* CLOCK_MONOTONIC when this program image loaded the hook; differs after exec */
    uint32_t clock;         /* enum ct_clock_kind of all ticks in the segment */
    /* 1: as long as its memory exists, the program image that writes the segment holds a write lock on the
     * file (an open-file-description lock). The kernel drops the lock when it frees the program image's
     * memory. */
    uint32_t held;
    /* Inode of /proc/self/ns/pid, or 0 if unknown. Determines whether `pid` is valid in the reader's
     * namespace. */
    uint64_t pid_namespace;
    /* CLOCK_MONOTONIC. Calls after this time may be missing from the process's segments, because no daemon
     * was running or the daemon had exited. 0: no calls are missing. */
    uint64_t absent_ns;
    struct ct_anchor anchor; /* taken at creation */
    char exe[256];
    char cmdline[1024]; /* arguments separated by spaces, truncated to fit */

    /* Variable. */
    _Atomic uint32_t ready;      /* 1 once all fields above have been written (release) */
    _Atomic uint32_t flags;      /* enum ct_segment_flags */
    _Atomic uint32_t lanes;      /* number of lanes whose headers are allocated and set up (release) */
    _Atomic uint32_t functions;  /* directory entries in use (release) */
    _Atomic uint32_t selections; /* hook: the value of ct_control.selections for the selection in effect; 0 if
                                  * it is from the environment */
    uint32_t maker;              /* enum ct_maker: constant */
    struct ct_loss unlaned[CT_UNLANED_COUNT]; /* lost calls of threads without a lane, by enum ct_unlaned */
    /* The hook sets this field to 1 after it has changed functions' counters. The collector resets it to 0
     * before it reads the counters. */
    _Atomic uint32_t has_drops;
    /* Hook: the number of driver functions intercepted in each way. All are zero if unknown. */
    _Atomic uint16_t intercepts[CT_INTERCEPT_COUNT];
    _Atomic uint16_t drivers; /* hook: number of driver images whose functions are recorded */
    uint16_t reserved0;
    /* Hook: the state of the recording of GPU work. The lowest byte contains enum ct_gpu_state
     * (gpu_recording.h), and the upper bytes an enum ct_gpu_form or the error of a CUPTI function. */
    _Atomic uint32_t gpu;
    /* Hook: the offset in bytes of the thread-local variable ct_self from the thread pointer. ct_self points
     * to a struct ct_producer, which begins with the address of the thread's lane. 0: unknown. Constant. */
    int32_t producer;
    uint32_t reserved1;
    /* Probe: all calls that returned before this tick have been published. Stored with release after the
     * calls have been published, and kept up to date even while there are no calls. Pairs with the acquire in
     * ct_shm_read_complete() of collector/source/shm/shm_drain.c. */
    _Atomic uint64_t complete;
    /* Hook: the name of the tool that has subscribed to CUPTI, NUL-terminated. Empty if unknown. Written
     * before `gpu` becomes CT_GPU_TAKEN. */
    char gpu_holder[64];
    /* The request for a recording of GPU work: the end of the recording, in CLOCK_MONOTONIC. A time in the
     * past ends the recording. Each request has a different time. 0: none has been requested. The hook sets
     * the first request, and the collector all further ones. */
    _Atomic uint64_t gpu_until_ns;
    /* The last of the session's requests (struct ct_control) that `gpu_until_ns` takes into account. Written
     * like `gpu_until_ns`. */
    _Atomic uint64_t gpu_session_ns;
    /* Hook: the last request that the hook has followed. `gpu` contains the result. */
    _Atomic uint64_t gpu_followed_ns;
};
static_assert(sizeof(struct ct_segment) == 1592, "ct_segment");
static_assert(sizeof(struct ct_segment) <= CT_DIRECTORY_OFFSET, "ct_segment");

/* Notes that a function's counter has changed, since the collector would otherwise not read the directory.
 * Must be called after the change. `has_drops` is written at most once between two reads by the collector.
 * Both sides write before they read. Therefore, either the caller sees the collector's 0, or the collector
 * sees the changed counter at its next read. On x86-64, the atomic additions and the collector's exchange are
 * fences. */
static inline void ct_segment_note_drop(struct ct_segment *segment)
{
#if !defined(__x86_64__)
    atomic_thread_fence(memory_order_seq_cst);
#endif
    if (!atomic_load_explicit(&segment->has_drops, memory_order_relaxed))
        atomic_store_explicit(&segment->has_drops, 1, memory_order_relaxed);
}

/* Returns how much of a file system of `bytes` bytes must stay free when segments allocate memory that they
 * require. All segments together must leave half of the file system free, or 512 MiB if that is less. */
static inline uint64_t ct_segment_leaves(uint64_t bytes)
{
    const uint64_t enough = UINT64_C(512) << 20;
    return bytes / 2 < enough ? bytes / 2 : enough;
}

/* Returns the directory. The first `functions` entries are in use. */
static inline struct ct_function *ct_segment_directory(struct ct_segment *segment)
{
    return (struct ct_function *)(void *)((uint8_t *)segment + CT_DIRECTORY_OFFSET);
}

static inline uint64_t ct_segment_lane_offset(const struct ct_segment *geometry, uint32_t lane)
{
    return geometry->lane_offset + (uint64_t)lane * geometry->lane_stride;
}

/* Returns the offset of a lane's ring of `bytes` bytes, which must not be the shortest ring. The file
 * reserves twice the length of the longest ring for each lane. The longest ring is in the second half of this
 * range, the next shorter ring in the second quarter, and so on. */
static inline uint64_t ct_segment_ring_offset(const struct ct_segment *geometry, uint32_t lane,
                                              uint64_t bytes)
{
    return ct_segment_lane_offset(geometry, geometry->lane_slots) + lane * 2 * geometry->ring_bytes + bytes;
}

/* True if `bytes` is a valid size for the longest ring. */
static inline bool ct_ring_bytes_valid(uint64_t bytes)
{
    return bytes >= CT_RING_BYTES_MIN && bytes <= CT_RING_BYTES_MAX && (bytes & (bytes - 1)) == 0;
}

/* The first lane's offset, which follows the directory and is page-aligned. */
#define CT_LANE_OFFSET (CT_DIRECTORY_OFFSET + (uint64_t)CT_FUNCTIONS_MAX * sizeof(struct ct_function))
static_assert(CT_LANE_OFFSET % 4096 == 0, "lanes start on a page");
/* The shortest segment consists of the header and the directory's first page. It is used if the file size
 * limit leaves no room for lanes. All calls are then counted as lost in the header. */
#define CT_SEGMENT_BYTES_MIN (CT_DIRECTORY_OFFSET + UINT64_C(4096))

/* True if geometry, clock and maker are valid in this version, so that offsets may be computed from the
 * geometry. */
static inline bool ct_segment_valid(const struct ct_segment *segment)
{
    return segment->header_bytes == sizeof(*segment) && ct_ring_bytes_valid(segment->ring_bytes) &&
           segment->function_slots > 0 && segment->function_slots <= CT_FUNCTIONS_MAX &&
           segment->lane_slots > 0 && segment->lane_slots <= CT_LANES_MAX &&
           segment->lane_offset == CT_LANE_OFFSET &&
           segment->lane_stride == CT_LANE_HEADER_BYTES + CT_CHUNK_BYTES && segment->clock < CT_CLOCK_COUNT &&
           segment->maker < CT_MAKER_COUNT;
}

enum ct_segment_hold { CT_SEGMENT_HELD, CT_SEGMENT_LET_GO, CT_SEGMENT_HOLD_UNKNOWN };

/* Checks whether the process that writes the segment is still running the same program. The check works
 * across pid namespaces. `fd` is the segment's file, under a different open file description than the program
 * image's. The result is unknown if the kernel refused to give the program image a lock. */
static inline enum ct_segment_hold ct_segment_hold(const struct ct_segment *segment, int fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
        return CT_SEGMENT_HOLD_UNKNOWN;
    if (lock.l_type != F_UNLCK)
        return CT_SEGMENT_HELD;
    return segment->held ? CT_SEGMENT_LET_GO : CT_SEGMENT_HOLD_UNKNOWN;
}

#endif
