/* Learns kernel names. Names are learned from calls that return handles, from images with exactly one kernel,
 * and from the driver's answers to the program's own queries. For handles from any other source, the decoders
 * of launches query the driver (decode/name_query.c). For example, cuFFT 12 gets its functions through a
 * table returned by cuGetExportTable, and a program has obtained its handles before `cudatrace attach`.
 *
 * The driver reuses a handle's address after an unload. The decoders of all calls that return handles
 * therefore call these functions, which overwrite any facts about an earlier use of the handle. Each handle
 * is stored with its owner: a module or kernel owns its functions, and a library owns its kernels and
 * modules. An unload removes all entries owned by the unloaded handle, so memory use is bounded by the code
 * loaded at the same time.
 *
 * Readers take no lock (table.h, pool.h). Writers hold the table lock. If a signal handler interrupts a
 * thread that holds the table lock, the handler learns nothing, and only a name is lost. */
#include "kernel_names.h"

#include "current.h"
#include "pool.h"
#include "table.h"
#include "test_point.h"
#include "texts.h"

struct entry {
    struct ct_pool_link link;
    _Atomic uint32_t string; /* 0: no name is known */
    _Atomic uint32_t doubts; /* the number of doubts when the name was learned */
    _Atomic bool is_refused; /* the driver has reported no name since */
    uint64_t handle, owner;
    uint64_t learned;        /* ct_now() when the handle was learned; 0 if nothing was recorded */
    uint32_t previous, next; /* entries with the same owner */
};

static struct ct_pool entries = { .object_bytes = sizeof(struct entry) };
static struct ct_table by_handle; /* maps a CUfunction, CUkernel or CUmodule to its entry */
static struct ct_table by_owner;  /* maps a CUmodule, CUlibrary or CUkernel to the first entry that it owns */

static struct entry *entry_at(uint32_t number)
{
    return ct_pool_at(&entries, number);
}

/* Owners that are not handles. */
enum {
    OWNER_UNKNOWN = 1, /* owner of handles that the program obtained without the hook's knowledge */
    OWNER_NONE = 2,    /* owner of modules and libraries */
};

/* Counts the contexts that have ended. The modules in a context are unloaded with it, but no call reveals
 * which modules those are. If a program gets functions without the hook's knowledge (`hidden_ways`), the hook
 * may not notice that a handle is reused. From then on, the hook no longer uses names that it learned before
 * a context was destroyed. */
static _Atomic uint32_t doubts;
static _Atomic bool hidden_ways;

_Atomic uint32_t ct_names_version = 1;

/* ---- writing ---- */

static _Atomic bool writing;
static uint32_t forgotten; /* counts how many times all entries were forgotten */

/* Makes all lanes look their kernels up again, instead of using the names' IDs that they have cached. */
static void count_change(void)
{
    if (atomic_fetch_add_explicit(&ct_names_version, 1, memory_order_release) == UINT32_MAX)
        atomic_fetch_add_explicit(&ct_names_version, 1, memory_order_release);
}

/* If a process forks while another thread is writing, the child inherits half-changed lists, but not the
 * thread that would complete them. The child therefore starts with empty lists. */
static bool write_begin(void)
{
    if (!ct_table_lock())
        return false;
    if (CT_UNLIKELY(atomic_load_explicit(&writing, memory_order_relaxed))) {
        ct_table_forget(&by_handle);
        ct_table_forget(&by_owner);
        ct_pool_forget(&entries);
        ct_texts_forget();
        forgotten++;
        count_change();
    }
    atomic_store_explicit(&writing, true, memory_order_relaxed);
    CT_TEST_POINT("kernel_names.writing");
    atomic_thread_fence(memory_order_seq_cst); /* before the changes, since the child of a fork may see only
                                                * some of them */
    return true;
}

static void write_end(bool changed)
{
    CT_TEST_POINT("kernel_names.written");
    if (changed)
        count_change();
    atomic_store_explicit(&writing, false, memory_order_release);
    ct_table_unlock();
}

static bool owner_enter(uint32_t number, struct entry *entry)
{
    const uint32_t first = ct_table_get(&by_owner, entry->owner);
    if (!ct_table_set(&by_owner, entry->owner, number))
        return false;
    entry->previous = 0;
    entry->next = first;
    if (first)
        entry_at(first)->previous = number;
    return true;
}

static void owner_leave(const struct entry *entry)
{
    if (entry->previous)
        entry_at(entry->previous)->next = entry->next;
    else
        ct_table_set(&by_owner, entry->owner, entry->next);
    if (entry->next)
        entry_at(entry->next)->previous = entry->previous;
}

static void take_out(uint32_t number)
{
    struct entry *entry = entry_at(number);
    owner_leave(entry);
    ct_table_set(&by_handle, entry->handle, 0);
    ct_texts_release(atomic_load_explicit(&entry->string, memory_order_relaxed));
    atomic_store_explicit(&entry->string, 0, memory_order_relaxed);
    ct_pool_give(&entries, number);
}

/* True if the entry already has the given owner and name, and no context has been destroyed since. */
static bool says(const struct entry *entry, uint64_t owner, uint32_t string)
{
    return entry->owner == owner && atomic_load_explicit(&entry->string, memory_order_relaxed) == string &&
           atomic_load_explicit(&entry->doubts, memory_order_relaxed) ==
               atomic_load_explicit(&doubts, memory_order_relaxed);
}

/* Stores the owner and the name of `handle`, and takes over a holder of the string. Removes the handle's
 * earlier entry, even if there is no memory for a new entry. Returns false if nothing has changed, which is
 * frequent: cuBLASLt looks up the same function before each of its launches. */
static bool put(uint64_t handle, uint64_t owner, uint32_t string, uint64_t learned)
{
    const uint32_t before = ct_table_get(&by_handle, handle);
    if (before && says(entry_at(before), owner, string)) {
        entry_at(before)->learned = learned;
        atomic_store_explicit(&entry_at(before)->is_refused, false, memory_order_relaxed);
        ct_texts_release(string);
        return false;
    }
    if (before)
        take_out(before);
    const uint32_t number = owner != 0 && owner != handle ? ct_pool_take(&entries) : 0;
    if (!number) {
        ct_texts_release(string);
        return true;
    }
    struct entry *entry = entry_at(number);
    entry->handle = handle;
    entry->owner = owner;
    entry->learned = learned;
    atomic_store_explicit(&entry->string, string, memory_order_relaxed);
    atomic_store_explicit(&entry->doubts, atomic_load_explicit(&doubts, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&entry->is_refused, false, memory_order_relaxed);
    if (!owner_enter(number, entry)) {
        ct_texts_release(string);
        ct_pool_give(&entries, number);
    } else if (!ct_table_set(&by_handle, handle, number)) {
        take_out(number);
    }
    return true;
}

static uint64_t stamp(const struct ct_producer *producer)
{
    return producer ? ct_now() : 0;
}

void ct_names_learn(uint64_t handle, uint64_t owner, const char *name, const struct ct_producer *producer)
{
    const uint64_t now = stamp(producer);
    if (!write_begin())
        return;
    write_end(put(handle, owner, name ? ct_texts_hold(name, CT_STRING_MAX) : 0, now));
}

static bool is_doubtful(const struct entry *entry)
{
    return atomic_load_explicit(&entry->doubts, memory_order_relaxed) !=
               atomic_load_explicit(&doubts, memory_order_relaxed) &&
           atomic_load_explicit(&hidden_ways, memory_order_relaxed);
}

/* Returns an entry's string. Returns 0 if the entry has no string, or if the name is in doubt and must not be
 * used. */
static uint32_t string_of(const struct entry *entry)
{
    const uint32_t string = entry ? atomic_load_explicit(&entry->string, memory_order_relaxed) : 0;
    return string && is_doubtful(entry) ? 0 : string;
}

static struct entry *find(uint64_t handle)
{
    const uint32_t number = ct_table_get(&by_handle, handle);
    return number ? entry_at(number) : NULL;
}

void ct_names_told(uint64_t handle, const char *name, const struct ct_producer *producer)
{
    if (string_of(find(handle)))
        return;
    const uint64_t now = stamp(producer);
    if (!write_begin())
        return;
    const struct entry *entry = find(handle);
    const uint64_t owner = entry ? entry->owner : OWNER_UNKNOWN;
    const bool changed = put(handle, owner, name ? ct_texts_hold(name, CT_STRING_MAX) : 0, now);
    struct entry *told = find(handle);
    if (told && !name)
        atomic_store_explicit(&told->is_refused, true, memory_order_relaxed);
    write_end(changed && name); /* lanes need not look up again that there is no name */
}

bool ct_names_query(uint64_t handle)
{
    const struct entry *entry = find(handle);
    return !entry ||
           (string_of(entry) == 0 &&
            (is_doubtful(entry) || !atomic_load_explicit(&entry->is_refused, memory_order_relaxed)));
}

bool ct_names_listed(uint64_t handle, uint64_t owner, const struct ct_producer *producer)
{
    const uint64_t now = stamp(producer);
    if (!write_begin())
        return false;
    const struct entry *known = find(handle), *image = find(owner);
    const uint32_t only = image ? atomic_load_explicit(&image->string, memory_order_relaxed) : 0;
    bool changed = false;
    if (!known || known->owner != owner) {
        ct_texts_share(only);
        changed = put(handle, owner, only, now);
    }
    write_end(changed);
    return only == 0;
}

void ct_names_alias(uint64_t handle, uint64_t of, const struct ct_producer *producer)
{
    const uint64_t now = stamp(producer);
    if (!write_begin())
        return;
    const uint32_t entry = ct_table_get(&by_handle, of);
    const uint32_t string = entry ? atomic_load_explicit(&entry_at(entry)->string, memory_order_relaxed) : 0;
    ct_texts_share(string);
    write_end(put(handle, of, string, now));
}

/* Hands all entries owned by `entry` over to the owner of `entry`, whose list then contains them after
 * `entry` itself. For example, functions owned by a library's module are then owned by the library. */
static void adopt_below(uint32_t number, struct entry *entry)
{
    for (uint32_t i = ct_table_get(&by_owner, entry->handle), after; i; i = after) {
        struct entry *moved = entry_at(i);
        after = moved->next;
        owner_leave(moved);
        moved->owner = entry->owner;
        moved->previous = number;
        moved->next = entry->next;
        if (entry->next)
            entry_at(entry->next)->previous = i;
        entry->next = i;
    }
}

/* Removes the entries owned by `owner`, except for handles learned after the unload began. These belong to
 * another thread, whose module got the address that the driver had just freed. */
static void take_below(uint64_t owner, uint64_t began)
{
    for (uint32_t number = ct_table_get(&by_owner, owner), next; number; number = next) {
        struct entry *entry = entry_at(number);
        const bool goes = entry->learned < began;
        if (goes && entry->handle != owner)
            adopt_below(number, entry);
        next = entry->next;
        if (goes)
            take_out(number);
    }
}

static void unload(uint64_t owner, uint64_t began)
{
    take_below(owner, began);
    const uint32_t number = ct_table_get(&by_handle, owner);
    if (number && entry_at(number)->owner == OWNER_NONE && entry_at(number)->learned < began)
        take_out(number);
}

void ct_names_unload(uint64_t owner, uint64_t began)
{
    if (!write_begin())
        return;
    unload(owner, began);
    take_below(OWNER_UNKNOWN, began); /* the unloaded handle may have owned some of the handles whose owner is
                                       * unknown */
    write_end(true);
}

void ct_names_load(uint64_t handle, uint64_t began, const char *name, size_t name_bytes,
                   const struct ct_producer *producer)
{
    const uint64_t now = stamp(producer);
    if (!write_begin())
        return;
    unload(handle, began);
    if (name)
        put(handle, OWNER_NONE, ct_texts_hold(name, name_bytes), now);
    write_end(true);
}

void ct_names_doubt(void)
{
    if (!write_begin())
        return;
    take_below(OWNER_UNKNOWN, UINT64_MAX);
    atomic_fetch_add_explicit(&doubts, 1, memory_order_relaxed);
    write_end(true);
}

/* ---- reading ---- */

uint32_t ct_names_kernel(uint64_t handle, struct ct_producer *producer, bool alive)
{
    uint32_t version = atomic_load_explicit(&ct_names_version, memory_order_acquire);
    struct entry *entry = find(handle);
    if (CT_UNLIKELY(!entry && alive) && !atomic_exchange_explicit(&hidden_ways, true, memory_order_relaxed)) {
        count_change();
        version = atomic_load_explicit(&ct_names_version, memory_order_acquire);
    }
    const uint32_t string = string_of(entry);
    const uint32_t number = ct_texts_number(string, producer);
    if (producer && producer->lane && (string ? ct_texts_sent(string, producer) : alive))
        *ct_kernel_memo(producer, handle) =
            (struct ct_kernel_memo){ .handle = handle, .version = version, .number = number };
    return number;
}

/* ---- strings that the application registers ---- */

/* The upper bits of a string ID are the value of `forgotten` when the ID was assigned. If all strings have
 * been forgotten since, the ID is invalid. */
enum { STRING_BITS = 24 };
static_assert((uint64_t)CT_POOL_BLOCK * CT_POOL_BLOCKS <= UINT64_C(1) << STRING_BITS, "a string fits");

uint32_t ct_names_string(const char *text)
{
    if (!write_begin())
        return 0;
    const uint32_t string = ct_texts_keep(text);
    write_end(false);
    return string ? (forgotten & 0xff) << STRING_BITS | string : 0;
}

const char *ct_names_text(uint64_t number, size_t *bytes)
{
    const uint64_t string = number & ((UINT64_C(1) << STRING_BITS) - 1);
    return string && number >> STRING_BITS == (forgotten & 0xff) ? ct_texts_kept((uint32_t)string, bytes)
                                                                 : NULL;
}
