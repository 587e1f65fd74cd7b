/* Kernels' names and graphs' sizes, by handle. Called by decode.c.
 *
 * Names come from the calls that hand the handles out; for a handle that was handed out before the hook
 * looked, the driver is asked once. The driver reuses a handle's address after an unload, but every way to
 * get one passes here and overwrites what was known of its predecessor, so an entry is never stale for a
 * handle that is alive. Equal names share one string number, however often a module is loaded.
 *
 * Readers take no lock: tables are open-addressed, entries are written value before key, and a table that is
 * outgrown stays mapped (all of them together are smaller than the newest). Writers hold the process lock;
 * a signal handler that finds its own thread holding it learns nothing and loses only a name. */
#include "hook.h"

#include <string.h>
#include <sys/mman.h>

static void *map_pages(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* ---- a table from 64-bit keys (never 0) to 32-bit values ---- */

struct entry {
    _Atomic uint64_t key;
    _Atomic uint32_t value;
    uint32_t reserved;
};

struct table {
    uint64_t mask; /* entries - 1 */
    uint64_t used;
    struct entry entries[];
};

typedef struct table *_Atomic table_pointer;

enum { TABLE_ENTRIES_FIRST = 255 }; /* with its header a page and a bit */

static uint64_t hash(uint64_t key)
{
    return (key ^ key >> 29) * UINT64_C(0x9e3779b97f4a7c15) >> 7;
}

static struct entry *find(struct table *table, uint64_t key)
{
    if (!table)
        return NULL;
    for (uint64_t i = hash(key);; i++) {
        struct entry *entry = &table->entries[i & table->mask];
        /* Pairs with the release in put(). */
        const uint64_t found = atomic_load_explicit(&entry->key, memory_order_acquire);
        if (found == key)
            return entry;
        if (found == 0)
            return NULL;
    }
}

static void put(struct table *table, uint64_t key, uint32_t value)
{
    uint64_t i = hash(key);
    while (atomic_load_explicit(&table->entries[i & table->mask].key, memory_order_relaxed) != 0)
        i++;
    struct entry *entry = &table->entries[i & table->mask];
    atomic_store_explicit(&entry->value, value, memory_order_relaxed);
    atomic_store_explicit(&entry->key, key, memory_order_release);
    table->used++;
}

/* Room for one entry more; false without memory. The process lock is held. */
static bool reserve(table_pointer *place)
{
    struct table *old = atomic_load_explicit(place, memory_order_relaxed);
    if (old && old->used < old->mask - old->mask / 4)
        return true;
    const uint64_t entries = old ? (old->mask + 1) * 2 : TABLE_ENTRIES_FIRST + 1;
    struct table *grown = map_pages(sizeof(*grown) + entries * sizeof(struct entry));
    if (!grown)
        return false;
    grown->mask = entries - 1;
    for (uint64_t i = 0; old && i <= old->mask; i++) {
        const uint64_t key = atomic_load_explicit(&old->entries[i].key, memory_order_relaxed);
        if (key)
            put(grown, key, atomic_load_explicit(&old->entries[i].value, memory_order_relaxed));
    }
    /* Pairs with the acquire loads of the readers. */
    atomic_store_explicit(place, grown, memory_order_release);
    return true;
}

static uint32_t get(table_pointer *place, uint64_t key)
{
    struct entry *entry = key ? find(atomic_load_explicit(place, memory_order_acquire), key) : NULL;
    return entry ? atomic_load_explicit(&entry->value, memory_order_relaxed) : 0;
}

/* The process lock is held. */
static void set(table_pointer *place, uint64_t key, uint32_t value)
{
    struct entry *entry = find(atomic_load_explicit(place, memory_order_relaxed), key);
    if (entry)
        atomic_store_explicit(&entry->value, value, memory_order_relaxed);
    else if (key && reserve(place))
        put(atomic_load_explicit(place, memory_order_relaxed), key, value);
}

/* ---- strings ---- */

/* A string number is an index into these. The first entry is unused: 0 means unknown. */
struct string {
    const char *text;
    uint32_t bytes;
    _Atomic uint32_t epoch; /* of the segment in which it was defined last */
};

enum { STRINGS_BLOCK = 1024, STRING_BLOCKS = 4096 };
static struct string *_Atomic blocks[STRING_BLOCKS];
static uint32_t strings = 1;
static char *arena;
static size_t arena_left;

static table_pointer by_text;   /* hash of the text to string number */
static table_pointer by_handle; /* CUfunction or CUkernel to string number */
static table_pointer graphs;    /* CUgraphExec to kernel nodes */

static struct string *string_at(uint32_t number)
{
    struct string *block = atomic_load_explicit(&blocks[number / STRINGS_BLOCK], memory_order_acquire);
    return &block[number % STRINGS_BLOCK];
}

static uint64_t hash_text(const char *text, size_t bytes)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return h ? h : 1;
}

static const char *keep(const char *text, size_t bytes)
{
    const size_t wanted = bytes + 1, arena_bytes = 256 * 1024;
    if (wanted > arena_left) {
        arena = map_pages(arena_bytes);
        arena_left = arena ? arena_bytes : 0;
        if (!arena)
            return NULL;
    }
    char *copy = arena;
    memcpy(copy, text, bytes); /* the end is zero already */
    arena += wanted;
    arena_left -= wanted;
    return copy;
}

/* The process lock is held. Two texts of one 64-bit hash would be probed for under the next key. */
static uint32_t intern(const char *text)
{
    const size_t length = strlen(text);
    const size_t bytes = length < CT_STRING_MAX ? length : CT_STRING_MAX;
    uint64_t key = hash_text(text, bytes);
    uint32_t number;
    while ((number = get(&by_text, key)) != 0) {
        const struct string *string = string_at(number);
        if (string->bytes == bytes && memcmp(string->text, text, bytes) == 0)
            return number;
        key = key + 1 ? key + 1 : 1;
    }
    if (strings >= (uint32_t)STRINGS_BLOCK * STRING_BLOCKS)
        return 0;
    struct string *_Atomic *block = &blocks[strings / STRINGS_BLOCK];
    if (!atomic_load_explicit(block, memory_order_relaxed)) {
        struct string *memory = map_pages(STRINGS_BLOCK * sizeof(struct string));
        if (!memory)
            return 0;
        atomic_store_explicit(block, memory, memory_order_release);
    }
    const char *copy = keep(text, bytes);
    if (!copy)
        return 0;
    *string_at(strings) = (struct string){ .text = copy, .bytes = (uint32_t)bytes };
    set(&by_text, key, strings);
    return strings++;
}

void ct_names_learn(uint64_t handle, const char *name)
{
    if (!ct_process_lock())
        return;
    const uint32_t number = intern(name);
    set(&by_handle, handle, number);
    ct_process_unlock();
}

void ct_names_alias(uint64_t handle, uint64_t of)
{
    if (!ct_process_lock())
        return;
    set(&by_handle, handle, get(&by_handle, of));
    ct_process_unlock();
}

void ct_names_erase(uint64_t handle)
{
    if (!ct_process_lock())
        return;
    if (get(&by_handle, handle))
        set(&by_handle, handle, 0);
    ct_process_unlock();
}

/* cuFuncGetName and cuKernelGetName (12.3 and newer) look the handle up and do nothing else. */
static uint32_t ask_driver(uint64_t handle)
{
    typedef ct_status get_name_function(const char **name, uint64_t handle);
    static const uint32_t rows[] = { CT_ROW_cuFuncGetName, CT_ROW_cuKernelGetName };
    for (size_t i = 0; handle && i < CT_ARRAY_LENGTH(rows); i++) {
        get_name_function *get_name = (get_name_function *)(uintptr_t)ct_real(rows[i]);
        const char *name = NULL;
        if (get_name && get_name(&name, handle) == 0 && name) {
            ct_names_learn(handle, name);
            return get(&by_handle, handle);
        }
    }
    return 0;
}

/* Sends a string's definition ahead of the record that will name it. */
static void define(struct ct_producer *producer, uint32_t number, struct string *string)
{
    const uint32_t slots = 1 + (string->bytes + 1 + CT_SLOT_BYTES - 1) / CT_SLOT_BYTES;
    const struct ct_record record = {
        .end = ct_now(), .kind = CT_KIND_STRING, .slots = (uint8_t)slots, .value = number
    };
    if (!ct_record_room(producer, slots))
        return; /* the next launch tries again */
    ct_record_write(producer, &record, string->text, string->bytes + 1);
    ct_lane_announce(producer->lane, producer->position);
    atomic_store_explicit(&string->epoch, producer->epoch, memory_order_relaxed);
}

uint32_t ct_names_kernel(uint64_t handle, struct ct_producer *producer, bool alive)
{
    uint32_t number = get(&by_handle, handle);
    if (CT_UNLIKELY(!number && alive))
        number = ask_driver(handle);
    if (!number || !producer || !producer->lane)
        return number;
    struct string *string = string_at(number);
    if (CT_UNLIKELY(atomic_load_explicit(&string->epoch, memory_order_relaxed) != producer->epoch))
        define(producer, number, string);
    return number;
}

void ct_graphs_learn(uint64_t exec, uint32_t kernel_nodes)
{
    if (!ct_process_lock())
        return;
    set(&graphs, exec, kernel_nodes);
    ct_process_unlock();
}

uint32_t ct_graphs_kernel_nodes(uint64_t exec)
{
    return get(&graphs, exec);
}
