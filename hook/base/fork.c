#include "fork.h"

#include "symbol.h"
#include "system.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int32_t pid;
/* Points to a byte that is 1 in process `pid`, and 0 in the child of a fork, where the kernel wipes the page.
 * NULL if the kernel does not support this. */
static uint8_t *own;

__thread uint32_t ct_vforked;

int32_t ct_fork_pid(void)
{
    return pid;
}

bool ct_fork_is_borrower(void)
{
    return own && *own && pid != (int32_t)syscall(SYS_getpid);
}

/* If the kernel can wipe memory on fork, only a thread that has called vfork() needs a system call here. A
 * child of vfork() shares its parent's memory, where *own is still 1, so only the pid distinguishes child and
 * parent. */
enum ct_fork_memory ct_fork_memory(void)
{
    if (CT_LIKELY(own && *own && !ct_vforked))
        return CT_MEMORY_OWN;
    if (own && !*own)
        return CT_MEMORY_INHERITED;
    if (!ct_system_begin())
        return own ? CT_MEMORY_BORROWED : CT_MEMORY_OWN;
    const bool is_own = pid == (int32_t)syscall(SYS_getpid);
    ct_system_end();
    if (is_own)
        ct_vforked = 0; /* back in the parent, so the child has exited or called exec */
    return is_own ? CT_MEMORY_OWN : own ? CT_MEMORY_BORROWED : CT_MEMORY_INHERITED;
}

static void make_own(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, 4096, MADV_WIPEONFORK) != 0) {
        munmap(page, 4096);
        return;
    }
    own = page;
    *own = 1;
}

void *ct_next_vfork; /* read by the trampoline */
void *ct_find_vfork(void);

/* Any thread may be the first to write `ct_next_vfork`, since all write the same value. */
void *ct_find_vfork(void)
{
    return ct_next_vfork = ct_symbol_of_library("vfork");
}

void ct_fork_begin(void)
{
    pid = (int32_t)syscall(SYS_getpid);
    make_own();
    ct_find_vfork();
}

void ct_fork_forget(void)
{
    ct_vforked = 0;
    if (own)
        *own = 1;
    pid = 0;
    if (ct_system_begin()) {
        pid = (int32_t)syscall(SYS_getpid);
        ct_system_end();
    }
}
