/* The hook's side of the segment file. No descriptor for it stays open between calls, because a program may
 * close all descriptors, as daemons do, and open its own file under the same number. The hook must not write
 * to such a file. To grow the segment, the hook reopens the file by name and checks that it is still the
 * same. */
#include "segment_file.h"

#include "current.h"
#include "descriptor.h"
#include "names.h"
#include "real_user.h"
#include "session_names.h"
#include "system.h"
#include "test_point.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static struct {
    /* The address at which each segment's header and directory are mapped, replacing the previous segment's.
     * A late writer that still uses an earlier segment therefore writes to the current one. NULL before the
     * first segment. */
    struct ct_segment *place;
    void *hold; /* the mapping that keeps the segment file locked */
    uint64_t ring_bytes;
    uint32_t functions; /* entries in use */
    uint32_t lanes;
    uint64_t inode, device;
    int error; /* with which memory or a file was last refused */
    char path[CT_NAME_BYTES];
    _Atomic bool is_group_full;  /* a control group's limit was why a longer ring was refused last */
    _Atomic uint64_t next_ns[2]; /* for each ct_bound_need: allocate no shared memory before this
                                  * CLOCK_MONOTONIC_COARSE time */
} own;

enum { REFUSAL_INTERVAL_NS = 1000000000 };

bool ct_segment_may_allocate(enum ct_bound_need need)
{
    return ct_system_allowed() &&
           ct_coarse_ns() >= atomic_load_explicit(&own.next_ns[need], memory_order_relaxed);
}

/* Stops allocations for REFUSAL_INTERVAL_NS. `is_group_full` is true if a control group's limit is the
 * reason. The error does not tell, because it is also ENOMEM if the address space has no room. Returns
 * -error. */
static int refuse_because(int error, bool is_group_full, enum ct_bound_need need)
{
    ct_system_refused(error);
    own.error = error;
    if (need == CT_BOUND_MORE)
        atomic_store_explicit(&own.is_group_full, is_group_full, memory_order_relaxed);
    atomic_store_explicit(&own.next_ns[need], ct_coarse_ns() + REFUSAL_INTERVAL_NS, memory_order_relaxed);
    return -error;
}

static int refuse(int error, enum ct_bound_need need)
{
    return refuse_because(error, false, need);
}

enum ct_loss_cause ct_segment_refusal(void)
{
    return atomic_load_explicit(&own.is_group_full, memory_order_relaxed) ? CT_LOSS_CGROUP : CT_LOSS_MEMORY;
}

static void forget_refusals(void)
{
    atomic_store_explicit(&own.is_group_full, false, memory_order_relaxed);
    for (int need = 0; need < 2; need++)
        atomic_store_explicit(&own.next_ns[need], 0, memory_order_relaxed);
}

/* True if the file size limit allows a file of `bytes` bytes. Creating a larger file raises SIGXFSZ. */
static bool may_have(uint64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

/* Allocates a range of the file, so that it can be accessed. `whole` is the current size in bytes of the ring
 * that contains the range. Returns 0 or -errno. */
static int allocate(int fd, uint64_t offset, uint64_t bytes, uint64_t whole, enum ct_bound_need need)
{
    int error = 0, memory_error = 0;
    if (!may_have(offset + bytes))
        error = EFBIG;
    else if (!ct_bound_has_room(fd, bytes, whole, need))
        error = ENOSPC;
    else if (need == CT_BOUND_MORE)
        error = memory_error = ct_bound_memory(bytes, whole);
    if (!error)
        do
            error = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
        while (error == EINTR);
    return error ? refuse_because(error, memory_error == ENOMEM, need) : 0;
}

/* ---- creating a segment ---- */

static void describe(struct ct_segment *segment, const struct ct_segment_plan *plan, bool held)
{
    segment->magic = CT_SEGMENT_MAGIC;
    segment->version = CT_PROTO_VERSION;
    segment->header_bytes = sizeof(*segment);
    segment->function_slots = CT_FUNCTIONS_MAX;
    segment->lane_slots = CT_LANES_MAX;
    segment->lane_offset = CT_LANE_OFFSET;
    segment->lane_stride = CT_LANE_HEADER_BYTES + CT_CHUNK_BYTES;
    segment->ring_bytes = plan->requested->ring_bytes;
    segment->pid = plan->pid;
    segment->uid = plan->maker == CT_MAKER_PROBE ? plan->uid : ct_real_euid();
    segment->producer = plan->producer;
    segment->exec_ns = plan->exec_ns;
    segment->clock = ct_clock_is_counter ? CT_CLOCK_COUNTER : CT_CLOCK_MONOTONIC;
    segment->maker = plan->maker;
    CT_TEST_POINT("segment_file.half_described");
    segment->held = held;
    static struct ct_program mine; /* static, since the stack may be small */
    if (!plan->program)
        ct_program_describe(&mine, plan->pid, true);
    const struct ct_program *program = plan->program ? plan->program : &mine;
    segment->process_start = program->start_ticks;
    segment->pid_namespace = program->pid_namespace;
    memcpy(segment->exe, program->exe, sizeof(segment->exe));
    memcpy(segment->cmdline, program->cmdline, sizeof(segment->cmdline));
    segment->anchor = ct_anchor_read(3);
    segment->absent_ns = plan->absent_ns;
    atomic_store_explicit(&segment->gpu_until_ns, plan->gpu_until_ns, memory_order_relaxed);
    atomic_store_explicit(&segment->gpu_session_ns, plan->requested->gpu_until_ns, memory_order_relaxed);
    atomic_store_explicit(&segment->complete, plan->complete, memory_order_relaxed);

    struct ct_function *unknown = ct_segment_directory(segment);
    strncpy(unknown->name, "(directory full)", CT_FUNCTION_NAME_MAX);
    unknown->category = CT_CATEGORY_other;
    atomic_store_explicit(&segment->functions, 1, memory_order_relaxed);
    CT_TEST_POINT("segment_file.described");
    /* Pairs with the acquire in the collector, after which the header is complete. */
    atomic_store_explicit(&segment->ready, 1, memory_order_release);
}

/* Creates a file without a name. It gets its name once it is complete, so that a process killed here leaves
 * no file behind, and the collector never sees an incomplete file. If unnamed files are not supported (Linux
 * before 3.11, no /proc), the caller passes NULL as `dir`, and the file has its name from the start. The
 * collector removes files that stay incomplete (collector/source/shm/watch.c). */
static int create_file(const char *dir)
{
    if (!dir)
        return ct_descriptor_open(own.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    return ct_descriptor_open(dir, O_RDWR | O_TMPFILE, 0600);
}

static bool give_name(int fd)
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, link, AT_FDCWD, own.path, AT_SYMLINK_FOLLOW) == 0;
}

/* Keeps the segment locked as long as this program image's memory exists. The collector cannot rely on the
 * pid, since it may be in a pid namespace that does not contain this process. An open file description keeps
 * its lock as long as anything refers to it. A mapping is such a reference even without a descriptor, and
 * children of fork() do not inherit this mapping. `fd` refers to another open file description of the same
 * file. Returns false, without a lock, if the kernel does not support such locks. */
static bool hold_segment(int fd, const struct ct_segment_plan *plan)
{
    const struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct flock seen = whole;
    if (own.hold)
        ct_bound_unmap(own.hold, CT_DIRECTORY_OFFSET); /* from an earlier daemon's segment */
    own.hold = NULL;
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    int description = ct_descriptor_open(link, O_RDWR, 0); /* the file may have no name yet */
    if (description < 0)
        description = ct_descriptor_open(own.path, O_RDWR | O_NOFOLLOW, 0);
    if (description < 0)
        return false;
    void *map = NULL;
    if (fcntl(description, F_OFD_SETLK, &whole) == 0)
        map = ct_bound_map(NULL, CT_DIRECTORY_OFFSET, PROT_READ, description, 0);
    if (map && plan->on_lock)
        plan->on_lock(description, plan->data);
    close(description);
    if (!map)
        return false;
    if (madvise(map, CT_DIRECTORY_OFFSET, MADV_DONTFORK) == 0 && fcntl(fd, F_OFD_GETLK, &seen) == 0 &&
        seen.l_type != F_UNLCK) {
        own.hold = map;
        return true;
    }
    ct_bound_unmap(map, CT_DIRECTORY_OFFSET);
    return false;
}

/* Moves a mapping to the address that all segments use. */
static struct ct_segment *put_in_place(void *map)
{
    if (!own.place) {
        own.place = map;
    } else { /* atomically, since other threads may be writing to the old mapping */
        if (!ct_bound_move(map, CT_LANE_OFFSET, own.place))
            return NULL;
    }
    return own.place;
}

/* Allocates the header and the directory's first page, and extends the file to the end of the directory. If
 * the file size limit does not allow that, the segment has no lanes and only counts lost calls. */
static bool allocate_first(int fd)
{
    return (!may_have(CT_LANE_OFFSET) || allocate(fd, CT_LANE_OFFSET - 4096, 4096, 0, CT_BOUND_FIRST) == 0) &&
           allocate(fd, 0, CT_SEGMENT_BYTES_MIN, 0, CT_BOUND_FIRST) == 0;
}

/* Creates the segment's file and maps it. Returns NULL if memory is refused, or if `dir` is set and unnamed
 * files are not supported. */
static struct ct_segment *make(const struct ct_segment_plan *plan, const char *dir)
{
    const int fd = create_file(dir);
    own.error = errno;
    if (fd < 0)
        return NULL;
    CT_TEST_POINT("segment_file.file_made");
    struct stat status;
    void *map = NULL;
    /* The umask may have removed the owner's permissions, and thus the daemon's. */
    if (ct_real_fstat(fd, &status) == 0 && ((status.st_mode & 0777) == 0600 || fchmod(fd, 0600) == 0) &&
        allocate_first(fd)) {
        CT_TEST_POINT("segment_file.allocated");
        map = ct_bound_map(NULL, CT_LANE_OFFSET, PROT_READ | PROT_WRITE, fd, 0);
        own.error = ENOMEM;
    }
    struct ct_segment *segment = NULL;
    if (map) {
        CT_TEST_POINT("segment_file.mapped");
        own.inode = status.st_ino;
        own.device = status.st_dev;
        describe(map, plan, hold_segment(fd, plan));
        CT_TEST_POINT("segment_file.ready");
        if (!dir) /* notifies the collector that the file is complete */
            utimensat(AT_FDCWD, own.path, NULL, AT_SYMLINK_NOFOLLOW);
        if (!dir || give_name(fd))
            segment = put_in_place(map);
        CT_TEST_POINT("segment_file.named");
    }
    close(fd);
    if (segment)
        return segment;
    if (map)
        ct_bound_unmap(map, CT_LANE_OFFSET);
    unlink(own.path);
    return NULL;
}

struct ct_segment *ct_segment_create(const struct ct_segment_plan *plan)
{
    const struct ct_session *session = plan->session;
    ct_session_segment_path(own.path, session->dir, session->uid, session->name, plan->requested->system,
                            plan->pid, ct_monotonic_ns());
    own.ring_bytes = plan->requested->ring_bytes;
    own.functions = 1;
    own.lanes = 0;
    /* The last segment may have been refused memory because its daemon had already removed the file. */
    forget_refusals();
    struct ct_segment *segment = make(plan, session->dir);
    if (!segment && ct_segment_may_allocate(CT_BOUND_FIRST))
        segment = make(plan, NULL);
    return segment;
}

int ct_segment_error(void)
{
    return own.error;
}

void ct_segment_abandon(void)
{
    if (own.place)
        ct_bound_map(own.place, CT_LANE_OFFSET, PROT_READ | PROT_WRITE, -1, 0);
    if (own.hold)
        ct_bound_unmap(own.hold, CT_DIRECTORY_OFFSET);
    own.hold = NULL;
}

void ct_segment_forget(void)
{
    forget_refusals();
    own.hold = NULL; /* not mapped in the child of a fork */
}

/* ---- growing it ---- */

/* Opens the segment's file again. Returns -errno if the file is missing or has been replaced. A process that
 * has changed its user may be unable to open it. On failure, the process keeps its existing mappings, and
 * tries again a second later. */
static int reopen(enum ct_bound_need need)
{
    const int fd = ct_descriptor_open(own.path, O_RDWR | O_NOFOLLOW, 0);
    if (fd < 0)
        return refuse(errno, need);
    struct stat status;
    if (ct_real_fstat(fd, &status) == 0 && status.st_ino == own.inode && status.st_dev == own.device)
        return fd;
    close(fd);
    return refuse(ESTALE, need);
}

uint64_t ct_segment_ring_slots(void)
{
    return own.ring_bytes / CT_SLOT_BYTES;
}

uint64_t ct_segment_first_bytes(uint32_t index)
{
    return ct_ring_slots(index, 0, ct_segment_ring_slots()) * CT_SLOT_BYTES;
}

static uint64_t lane_offset(uint32_t index)
{
    return CT_LANE_OFFSET + index * (uint64_t)(CT_LANE_HEADER_BYTES + CT_CHUNK_BYTES);
}

uint32_t ct_segment_lanes(void)
{
    return own.lanes;
}

struct ct_lane *ct_segment_lane(void *lane_place, uint8_t **ring)
{
    if (own.lanes >= CT_LANES_MAX)
        return NULL;
    const uint64_t offset = lane_offset(own.lanes), ring_bytes = ct_segment_first_bytes(own.lanes);
    const int fd = reopen(CT_BOUND_FIRST);
    if (fd < 0)
        return NULL;
    CT_TEST_POINT("segment_file.lane_opened");
    void *map = NULL;
    *ring = NULL;
    if (allocate(fd, offset, CT_LANE_HEADER_BYTES + ring_bytes, 0, CT_BOUND_FIRST) == 0)
        *ring = ct_bound_map(NULL, ring_bytes, PROT_READ | PROT_WRITE, fd,
                             (off_t)(offset + CT_LANE_HEADER_BYTES));
    if (*ring)
        map = ct_bound_map(lane_place, CT_LANE_HEADER_BYTES, PROT_READ | PROT_WRITE, fd, (off_t)offset);
    if (*ring && !map)
        ct_bound_unmap(*ring, ring_bytes);
    close(fd);
    if (!map)
        refuse(ENOMEM, CT_BOUND_FIRST);
    return map;
}

void ct_segment_lane_done(void)
{
    /* Pairs with the acquire in the collector. */
    atomic_store_explicit(&own.place->lanes, ++own.lanes, memory_order_release);
}

uint8_t *ct_segment_ring(uint32_t index, const struct ct_ring_piece *piece, uint8_t *ring)
{
    const int fd = reopen(CT_BOUND_MORE);
    if (fd < 0)
        return NULL;
    const struct ct_segment geometry = { .lane_slots = CT_LANES_MAX,
                                         .lane_offset = CT_LANE_OFFSET,
                                         .lane_stride = CT_LANE_HEADER_BYTES + CT_CHUNK_BYTES,
                                         .ring_bytes = own.ring_bytes };
    const uint64_t offset = ct_segment_ring_offset(&geometry, index, piece->ring_bytes) + piece->from;
    uint8_t *place = ring;
    if (allocate(fd, offset, piece->bytes, piece->whole, CT_BOUND_MORE) != 0) {
        place = NULL;
    } else {
        CT_TEST_POINT("segment_file.piece_allocated");
        if (!place)
            place = ct_bound_map(NULL, piece->ring_bytes, PROT_NONE, -1, 0);
        if (place &&
            !ct_bound_map(place + piece->from, piece->bytes, PROT_READ | PROT_WRITE, fd, (off_t)offset)) {
            if (!ring)
                ct_bound_unmap(place, piece->ring_bytes);
            place = NULL;
        }
        if (!place)
            refuse(ENOMEM, CT_BOUND_MORE);
    }
    close(fd);
    return place;
}

/* ---- the directory ---- */

static uint64_t entry_place(uint32_t id)
{
    return CT_DIRECTORY_OFFSET + (uint64_t)id * sizeof(struct ct_function);
}

bool ct_segment_may_define(void)
{
    return own.functions < CT_FUNCTIONS_MAX &&
           (entry_place(own.functions) % 4096 != 0 || ct_segment_may_allocate(CT_BOUND_FIRST));
}

static bool add_page(uint64_t place)
{
    if (!ct_system_begin())
        return false;
    const int fd = reopen(CT_BOUND_FIRST);
    const bool added = fd >= 0 && allocate(fd, place, 4096, 0, CT_BOUND_FIRST) == 0;
    if (fd >= 0)
        close(fd);
    ct_system_end();
    return added;
}

uint16_t ct_segment_define(struct ct_segment *segment, const char *name, enum ct_layer layer,
                           uint32_t category)
{
    const uint32_t id = own.functions;
    const uint64_t place = entry_place(id);
    if (!ct_segment_may_define() || (place % 4096 == 0 && !add_page(place)))
        return 0;
    CT_TEST_POINT("segment_file.entry_allocated");
    struct ct_function *entry = &ct_segment_directory(segment)[id];
    strncpy(entry->name, name, CT_FUNCTION_NAME_MAX);
    entry->layer = (uint8_t)layer;
    entry->category = category;
    CT_TEST_POINT("segment_file.entry_written");
    /* Pairs with the acquires in the collector and in ct_enter(), so that a record with this number is
     * written only after the function's entry. */
    own.functions = id + 1;
    atomic_store_explicit(&segment->functions, id + 1, memory_order_release);
    CT_TEST_POINT("segment_file.entry_published");
    return (uint16_t)id;
}
