#include "system.h"

#include "fault_signals.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

_Atomic uint32_t ct_system_silenced;
static _Atomic bool confined; /* by Landlock */

/* The number of unfinished ct_system_begin() calls in all threads, including nested ones. */
static _Atomic uint32_t busy;
static __thread uint32_t own_busy;

void ct_system_begin_anyway(void)
{
    own_busy++;
    /* This addition, the load in ct_system_begin() and the addition in ct_system_silence() are sequentially
     * consistent, so at least one of the two threads sees what the other has done. */
    atomic_fetch_add(&busy, 1);
}

bool ct_system_begin(void)
{
    if (!ct_system_allowed())
        return false;
    ct_system_begin_anyway();
    if (atomic_load(&ct_system_silenced) == 0)
        return true;
    ct_system_end();
    return false;
}

void ct_system_end(void)
{
    atomic_fetch_sub(&busy, 1);
    own_busy--;
}

/* Makes the raw system call, which has a 64-bit mask and cannot fail with these arguments. */
static uint64_t change_mask(int how, uint64_t mask)
{
    uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, how, &mask, &before, sizeof(mask));
    return before;
}

uint64_t ct_system_block_signals(void)
{
    return change_mask(SIG_BLOCK, ~(CT_FAULT_SIGNALS | CT_SETXID_SIGNAL));
}

void ct_system_mask_signals(uint64_t mask)
{
    change_mask(SIG_SETMASK, mask);
}

bool ct_system_alone(void)
{
    return atomic_load(&busy) <= own_busy;
}

/* rt_sigprocmask() copies the set from memory before it rejects an invalid `how`. The error is thus EINVAL
 * for a readable word and EFAULT for an unreadable word, and the signal mask does not change. */
enum ct_readable ct_system_readable(uint64_t address)
{
    const long nonsense = -1, set_bytes = 8;
    if (!ct_system_begin())
        return CT_READABLE_UNKNOWN;
    const int saved = errno;
    errno = 0;
    syscall(SYS_rt_sigprocmask, nonsense, address & ~UINT64_C(7), NULL, set_bytes);
    const int error = errno;
    errno = saved;
    ct_system_end();
    return error == EINVAL ? CT_READABLE_YES : error == EFAULT ? CT_READABLE_NO : CT_READABLE_UNKNOWN;
}

/* FUTEX_WAKE_OP modifies the second word before it wakes waiters on either word. The call fails with EFAULT
 * if the second word is not writable. Here, the operation adds 0, and no thread waits on either word. */
bool ct_system_writable(const void *address)
{
    static uint32_t nobody;
    if (!ct_system_begin())
        return false;
    const int saved = errno;
    const long woken = syscall(SYS_futex, &nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, NULL, address,
                               FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0));
    errno = saved;
    ct_system_end();
    return woken >= 0;
}

bool ct_page_writable(struct ct_page *page, const void *address)
{
    enum { PAGE_BITS = 12 }; /* of the smallest page */
    const uintptr_t number = (uintptr_t)address >> PAGE_BITS;
    if (page->number != number)
        *page = (struct ct_page){ .number = number, .is_writable = ct_system_writable(address) };
    return page->is_writable;
}

void ct_system_refused(int error)
{
    if ((error == EACCES || error == EPERM) && atomic_load_explicit(&confined, memory_order_relaxed))
        ct_system_silence();
}

void ct_system_silence(void)
{
    atomic_fetch_add(&ct_system_silenced, 1);
}

void ct_system_confined(void)
{
    atomic_store_explicit(&confined, true, memory_order_relaxed);
}

void ct_system_forget(void)
{
    atomic_store(&busy, own_busy);
}

/* ---- memory ---- */

static uint8_t *_Atomic reserve;
static _Atomic uint64_t reserve_used;

void *ct_system_reserve(uint64_t bytes)
{
    uint8_t *memory = atomic_load_explicit(&reserve, memory_order_acquire);
    bytes = (bytes + 4095) & ~UINT64_C(4095);
    if (!memory || bytes > CT_RESERVE_BYTES)
        return NULL;
    const uint64_t at = atomic_fetch_add_explicit(&reserve_used, bytes, memory_order_relaxed);
    return at <= CT_RESERVE_BYTES - bytes ? memory + at : NULL;
}

void ct_system_set_reserve(void *memory)
{
    atomic_store_explicit(&reserve, memory, memory_order_release);
}
