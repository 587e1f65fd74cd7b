/* An object and its tables may have been unloaded after an entry was exchanged. The hook therefore checks
 * with the kernel that an entry is readable, and restores it only if it still leads to the hook. */
#include "exchanged.h"

#include "bound.h"
#include "compiler.h"
#include "system.h"

#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

struct entry {
    void **where;
    void *before, *ours;
    struct ct_sealed sealed;
};

enum { CHUNK_ENTRIES = 1024, CHUNKS = 64, CHUNK_BYTES = CHUNK_ENTRIES * sizeof(struct entry) };
static struct entry *_Atomic chunks[CHUNKS];
static _Atomic uint32_t count;   /* number of entries, including those for which there was no room */
static _Atomic uint32_t writers; /* threads between begin and end */

void ct_exchanged_begin(void)
{
    atomic_fetch_add(&writers, 1);
}

void ct_exchanged_end(void)
{
    atomic_fetch_sub(&writers, 1);
}

void ct_exchanged_fork_child(void)
{
    atomic_store(&writers, 0);
}

static struct entry *entry_at(uint32_t at, bool makes)
{
    if (at >= CHUNKS * CHUNK_ENTRIES)
        return NULL;
    struct entry *_Atomic *place = &chunks[at / CHUNK_ENTRIES];
    struct entry *chunk = atomic_load_explicit(place, memory_order_acquire);
    if (!chunk && makes) {
        struct entry *made = ct_pages_map(CHUNK_BYTES);
        if (!made || atomic_compare_exchange_strong(place, &chunk, made))
            chunk = made;
        else
            ct_pages_unmap(made, CHUNK_BYTES);
    }
    return chunk ? &chunk[at % CHUNK_ENTRIES] : NULL;
}

bool ct_exchanged_note(void **where, void *before, void *ours, const struct ct_sealed *sealed)
{
    struct entry *entry = entry_at(atomic_fetch_add(&count, 1), true);
    if (!entry)
        return false;
    *entry = (struct entry){ where, before, ours, sealed ? *sealed : (struct ct_sealed){ 0 } };
    return true;
}

static bool leads_to(void **where, const void *ours)
{
    return ct_system_readable((uintptr_t)where) == CT_READABLE_YES &&
           __atomic_load_n(where, __ATOMIC_RELAXED) == ours;
}

/* True while the loader is unloading an object. */
#pragma weak _r_debug
static bool is_unloading(void)
{
    return &_r_debug && *(volatile int *)&_r_debug.r_state == RT_DELETE;
}

/* Returns true if a page's protection may have changed. */
static bool open_pages(struct ct_sealed *open, const struct ct_sealed *wanted)
{
    if (open->from == wanted->from)
        return false;
    if (open->from)
        mprotect(open->from, open->bytes, PROT_READ);
    *open = *wanted;
    if (open->from)
        mprotect(open->from, open->bytes, PROT_READ | PROT_WRITE);
    return true;
}

bool ct_exchanged_put_back(void)
{
    if (atomic_load(&writers) != 0 || is_unloading())
        return false;
    struct ct_sealed open = { 0 };
    struct ct_page page = { 0 };
    const uint32_t noted = atomic_load(&count);
    for (uint32_t i = 0; i < noted; i++) {
        struct entry *entry = entry_at(i, false);
        if (!entry || !entry->where || !leads_to(entry->where, entry->ours))
            continue;
        if (open_pages(&open, &entry->sealed))
            page = (struct ct_page){ 0 };
        if (!ct_page_writable(&page, entry->where))
            continue;
        __atomic_store_n(entry->where, entry->before, __ATOMIC_RELEASE);
        entry->where = NULL;
    }
    open_pages(&open, &(struct ct_sealed){ 0 });
    atomic_store(&count, 0);
    return true;
}
