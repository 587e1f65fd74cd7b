#include "bound.h"

#include "descriptor.h"
#include "segment.h"
#include "system.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <unistd.h>

/* ---- addresses ---- */

enum { PART_OF_ADDRESSES = 16 };

static _Atomic uint64_t mapped; /* bytes mapped by the hook; inherited across fork() */

/* Returns the limit on address space or the limit on private memory, whichever is lower, since most of the
 * address space in use is private memory. */
static uint64_t address_limit(void)
{
    /* RLIM_INFINITY (no limit) is the largest value. */
    struct rlimit all = { .rlim_cur = RLIM_INFINITY }, data = { .rlim_cur = RLIM_INFINITY };
    getrlimit(RLIMIT_AS, &all);
    getrlimit(RLIMIT_DATA, &data);
    return all.rlim_cur < data.rlim_cur ? all.rlim_cur : data.rlim_cur;
}

/* Returns the number of bytes that the process has mapped, or 0 if unknown. */
static uint64_t addresses_used(void)
{
    char text[128];
    ct_descriptor_read("/proc/self/statm", text, sizeof(text));
    return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool may_map(uint64_t bytes)
{
    const uint64_t limit = address_limit();
    if (limit == UINT64_MAX)
        return true;
    const uint64_t ours = atomic_load_explicit(&mapped, memory_order_relaxed), used = addresses_used();
    const uint64_t left = used < limit ? limit - used : 0;
    return ours + bytes <= limit / PART_OF_ADDRESSES && bytes <= left / PART_OF_ADDRESSES;
}

void *ct_bound_map(void *at, size_t bytes, int protection, int fd, off_t offset)
{
    const int saved_errno = errno;
    if (!at && !may_map(bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    const int flags =
        (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED) | (at ? MAP_FIXED : 0);
    void *memory = mmap(at, bytes, protection, flags, fd, offset);
    if (memory == MAP_FAILED)
        return NULL;
    if (!at)
        atomic_fetch_add_explicit(&mapped, bytes, memory_order_relaxed);
    errno = saved_errno;
    return memory;
}

bool ct_bound_move(void *memory, size_t bytes, void *to)
{
    const int saved_errno = errno;
    if (mremap(memory, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
        return false;
    atomic_fetch_sub_explicit(&mapped, bytes, memory_order_relaxed);
    errno = saved_errno;
    return true;
}

void ct_bound_unmap(void *memory, size_t bytes)
{
    const int saved_errno = errno;
    if (munmap(memory, bytes) == 0)
        atomic_fetch_sub_explicit(&mapped, bytes, memory_order_relaxed);
    errno = saved_errno;
}

void *ct_pages_map(size_t bytes)
{
    if (!ct_system_begin())
        return ct_system_reserve(bytes);
    const int saved_errno = errno;
    void *memory = ct_bound_map(NULL, bytes, PROT_READ | PROT_WRITE, -1, 0);
    errno = saved_errno;
    ct_system_end();
    return memory;
}

void ct_pages_unmap(void *pages, size_t bytes)
{
    if (!ct_system_begin())
        return;
    ct_bound_unmap(pages, bytes);
    ct_system_end();
}

/* ---- shared memory ---- */

/* A container's /dev/shm is often only 64 MiB in size, and its programs need it as well. Memory that tracing
 * requires (CT_BOUND_FIRST) is allocated only if half of the file system stays free. A ring grows only if
 * more stays free: five eighths of the file system or, on a large /dev/shm, a fixed amount. On top of that,
 * eight times the requested bytes must be available, or the ring's current size if that is more. Many small
 * rings thus take precedence over a few large ones. */
enum { MORE_EIGHTHS = 5, MORE_FITS = 8 };
#define MORE_LEAVES (UINT64_C(1) << 30)

bool ct_bound_has_room(int fd, uint64_t bytes, uint64_t whole, enum ct_bound_need need)
{
    struct statfs status;
    /* A file system that reports zero blocks has no size limit. */
    if (fstatfs(fd, &status) != 0 || status.f_blocks == 0)
        return true;
    const uint64_t block = (uint64_t)status.f_bsize, free_bytes = status.f_bavail * block;
    if (need == CT_BOUND_FIRST)
        return free_bytes >= ct_segment_leaves(status.f_blocks * block) + bytes;
    const uint64_t part = status.f_blocks / 8 * block * MORE_EIGHTHS;
    const uint64_t fits = bytes * MORE_FITS > whole ? bytes * MORE_FITS : whole;
    return free_bytes >= (part < MORE_LEAVES ? part : MORE_LEAVES) + fits;
}
