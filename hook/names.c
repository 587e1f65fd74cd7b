/* Kernels' names, by handle. Called by decode.c.
 *
 * Names come from the calls that hand the handles out; for a handle that was handed out before the hook
 * looked, the driver is asked once. The driver reuses a handle's address after an unload, but every way to
 * get one passes here and overwrites what was known of its predecessor, so an entry is never stale for a
 * handle that is alive. Equal names share one string number, however often a module is loaded.
 *
 * Readers take no lock (table.h). Writers hold the process lock; a signal handler that finds its own thread
 * holding it learns nothing and loses only a name. */
#include "table.h"

#include <string.h>

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

static struct ct_table by_text;   /* hash of the text to string number */
static struct ct_table by_handle; /* CUfunction or CUkernel to string number */

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
        arena = ct_map_pages(arena_bytes);
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

/* The number of a text that is kept, else 0 and the key to keep it under: two texts of one 64-bit hash are
 * probed for under the next key. */
static uint32_t find(const char *text, size_t bytes, uint64_t *key)
{
    *key = hash_text(text, bytes);
    uint32_t number;
    while ((number = ct_table_get(&by_text, *key)) != 0) {
        const struct string *string = string_at(number);
        if (string->bytes == bytes && memcmp(string->text, text, bytes) == 0)
            return number;
        *key = *key + 1 ? *key + 1 : 1;
    }
    return 0;
}

/* The process lock is held. */
static uint32_t intern(const char *text)
{
    const size_t bytes = strnlen(text, CT_STRING_MAX);
    uint64_t key;
    const uint32_t number = find(text, bytes, &key);
    if (number)
        return number;
    if (strings >= (uint32_t)STRINGS_BLOCK * STRING_BLOCKS)
        return 0;
    struct string *_Atomic *block = &blocks[strings / STRINGS_BLOCK];
    if (!atomic_load_explicit(block, memory_order_relaxed)) {
        struct string *memory = ct_map_pages(STRINGS_BLOCK * sizeof(struct string));
        if (!memory)
            return 0;
        atomic_store_explicit(block, memory, memory_order_release);
    }
    const char *copy = keep(text, bytes);
    if (!copy)
        return 0;
    *string_at(strings) = (struct string){ .text = copy, .bytes = (uint32_t)bytes };
    ct_table_set(&by_text, key, strings);
    return strings++;
}

uint32_t ct_names_string(const char *text)
{
    static uint32_t count;
    static size_t total_bytes;
    if (!ct_process_lock())
        return 0;
    const size_t bytes = strnlen(text, CT_STRING_MAX);
    uint64_t key;
    uint32_t number = find(text, bytes, &key);
    if (!number && (count >= CT_NAMES_STRINGS_MAX || total_bytes + bytes > CT_NAMES_STRINGS_BYTES)) {
        number = intern(CT_NAMES_NO_ROOM);
    } else if (!number) {
        number = intern(text);
        count++;
        total_bytes += bytes;
    }
    ct_process_unlock();
    return number;
}

const char *ct_names_text(uint64_t number, size_t *bytes)
{
    if (number == 0 || number >= (uint64_t)STRINGS_BLOCK * STRING_BLOCKS ||
        !atomic_load_explicit(&blocks[number / STRINGS_BLOCK], memory_order_acquire))
        return NULL;
    const struct string *string = string_at((uint32_t)number);
    *bytes = string->bytes;
    return string->text;
}

void ct_names_learn(uint64_t handle, const char *name)
{
    if (!ct_process_lock())
        return;
    const uint32_t number = intern(name);
    ct_table_set(&by_handle, handle, number);
    ct_process_unlock();
}

void ct_names_alias(uint64_t handle, uint64_t of)
{
    if (!ct_process_lock())
        return;
    ct_table_set(&by_handle, handle, ct_table_get(&by_handle, of));
    ct_process_unlock();
}

void ct_names_erase(uint64_t handle)
{
    if (!ct_process_lock())
        return;
    if (ct_table_get(&by_handle, handle))
        ct_table_set(&by_handle, handle, 0);
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
            return ct_table_get(&by_handle, handle);
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
    uint32_t number = ct_table_get(&by_handle, handle);
    if (CT_UNLIKELY(!number && alive))
        number = ask_driver(handle);
    if (!number || !producer || !producer->lane)
        return number;
    struct string *string = string_at(number);
    if (CT_UNLIKELY(atomic_load_explicit(&string->epoch, memory_order_relaxed) != producer->epoch))
        define(producer, number, string);
    return number;
}
