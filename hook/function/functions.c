/* The functions: one row each, and which address is which of the driver's. Called by the slow way of a call,
 * by lookup.c and by process.c. */
#include "hook.h"

#include "symbol.h"

#include <dlfcn.h>
#include <string.h>

#define ct_decode_none NULL
#include "decoders.h"

struct ct_row ct_rows[CT_ROWS_ALL] = {
#define ROW(function, group, words, decoder)                                                                 \
    [CT_ROW_##function] = {                                                                                  \
        .decode = ct_decode_##decoder,                                                                       \
        .stack_words = CT_STACK_WORDS(words),                                                                \
        .flags = CT_DECODER_FLAGS_##decoder,                                                                 \
        .category = CT_CATEGORY_##group,                                                                     \
    },
#include "driver_api.def"
#undef ROW
#define RUNTIME_ROW(version, function, group, words, decoder)                                                \
    [CT_RUNTIME_ROW(version, CT_RUNTIME_##function)] = {                                                     \
        .decode = ct_decode_##decoder,                                                                       \
        .stack_words = words,                                                                                \
        .flags = CT_DECODER_FLAGS_##decoder,                                                                 \
        .category = CT_CATEGORY_##group,                                                                     \
        .layer = CT_LAYER_RUNTIME,                                                                           \
    },
#define ROW(...) RUNTIME_ROW(0, __VA_ARGS__)
#include "runtime_api.def"
#undef ROW
#define ROW(...) RUNTIME_ROW(1, __VA_ARGS__)
#include "runtime_api.def"
#undef ROW
#define ROW(...) RUNTIME_ROW(2, __VA_ARGS__)
#include "runtime_api.def"
#undef ROW
};
static_assert(CT_RUNTIME_VERSIONS == 3, "rows for each version");

static const char *const names[CT_ROW_COUNT] = {
#define ROW(function, group, words, decoder) #function,
#include "driver_api.def"
#undef ROW
};

/* Names of rows that no table names: spares, then extras. */
static char made_names[CT_ROWS_ALL - CT_NAMED_COUNT][CT_FUNCTION_NAME_MAX + 1];
static _Atomic uint32_t spares, extras; /* in use; a row's fields are written before */

/* Addresses of real functions to rows: open addressing, filled once by resolve() and then only read. */
enum { ADDRESS_SLOTS = 2048 };
static_assert(ADDRESS_SLOTS > 2 * CT_ROW_COUNT, "half empty");
static struct {
    const void *real;
    uint32_t row;
} addresses[ADDRESS_SLOTS];

static _Atomic bool resolved;

static size_t address_slot(const void *real)
{
    return (size_t)(((uint64_t)(uintptr_t)real * UINT64_C(0x9e3779b97f4a7c15)) >> 53) % ADDRESS_SLOTS;
}

/* A function exported at two addresses' worth of names keeps the first: the driver has none such. */
static void remember(const void *real, uint32_t row)
{
    size_t slot = address_slot(real);
    while (addresses[slot].real && addresses[slot].real != real)
        slot = (slot + 1) % ADDRESS_SLOTS;
    if (!addresses[slot].real) {
        addresses[slot].row = row;
        addresses[slot].real = real;
    }
}

/* The look-ups may wait for the loader's lock, whose holder may be waiting for ours: they come before ours is
 * taken. Threads that race here write the same. */
static bool look_all_up(void)
{
    if (!ct_driver_symbol("cuInit"))
        return false;
    for (uint32_t row = 0; row < CT_ROW_COUNT; row++)
        ct_rows[row].real = ct_driver_symbol(names[row]);
    return true;
}

uint8_t ct_functions_form(const char *name)
{
    const char *suffix = strrchr(name, '_');
    return suffix && (strcmp(suffix, "_ptsz") == 0 || strcmp(suffix, "_ptds") == 0) ? CT_ROW_PER_THREAD : 0;
}

bool ct_functions_resolve(void)
{
    if (atomic_load_explicit(&resolved, memory_order_acquire))
        return true;
    if (!look_all_up() || !ct_process_lock())
        return false;
    if (!atomic_load_explicit(&resolved, memory_order_relaxed)) {
        for (uint32_t row = 0; row < CT_ROW_COUNT; row++) {
            ct_rows[row].flags |= ct_functions_form(names[row]);
            if (ct_rows[row].real)
                remember(ct_rows[row].real, row);
        }
        /* Pairs with the acquire above. */
        atomic_store_explicit(&resolved, true, memory_order_release);
    }
    ct_process_unlock();
    return true;
}

void *ct_functions_stub(const void *real)
{
    if (!real || !atomic_load_explicit(&resolved, memory_order_acquire))
        return NULL;
    for (size_t slot = address_slot(real); addresses[slot].real; slot = (slot + 1) % ADDRESS_SLOTS) {
        if (addresses[slot].real == real)
            return ct_stubs[addresses[slot].row];
    }
    return NULL;
}

static void *find_spare(const void *real)
{
    const uint32_t used = atomic_load_explicit(&spares, memory_order_acquire);
    for (uint32_t i = 0; i < used; i++) {
        if (ct_rows[CT_NAMED_COUNT + i].real == real)
            return ct_stubs[CT_NAMED_COUNT + i];
    }
    return NULL;
}

void *ct_functions_spare(void *real, const char *name)
{
    void *stub = find_spare(real);
    if (stub || !ct_process_lock())
        return stub;
    stub = find_spare(real);
    const uint32_t used = atomic_load_explicit(&spares, memory_order_relaxed);
    if (!stub && used < CT_SPARE_COUNT) {
        struct ct_row *row = &ct_rows[CT_NAMED_COUNT + used];
        strncpy(made_names[used], name, CT_FUNCTION_NAME_MAX);
        row->stack_words = CT_SPARE_STACK_WORDS;
        row->category = CT_CATEGORY_other;
        row->real = real;
        stub = ct_stubs[CT_NAMED_COUNT + used];
        /* Pairs with the acquire in find_spare(). */
        atomic_store_explicit(&spares, used + 1, memory_order_release);
    }
    ct_process_unlock();
    return stub;
}

static uint32_t find_extra(enum ct_layer layer, const char *name)
{
    const uint32_t used = atomic_load_explicit(&extras, memory_order_acquire);
    for (uint32_t row = CT_STUB_COUNT; row < CT_STUB_COUNT + used; row++) {
        if (ct_rows[row].layer == layer && strncmp(ct_functions_name(row), name, CT_FUNCTION_NAME_MAX) == 0)
            return row;
    }
    return CT_ROWS_ALL;
}

uint32_t ct_functions_extra(enum ct_layer layer, uint8_t category, const char *name, ct_decoder *decode)
{
    uint32_t found = find_extra(layer, name);
    if (found != CT_ROWS_ALL || !ct_process_lock())
        return found;
    found = find_extra(layer, name);
    const uint32_t used = atomic_load_explicit(&extras, memory_order_relaxed);
    if (found == CT_ROWS_ALL && used < CT_EXTRA_COUNT) {
        found = CT_STUB_COUNT + used;
        struct ct_row *row = &ct_rows[found];
        strncpy(made_names[found - CT_NAMED_COUNT], name, CT_FUNCTION_NAME_MAX);
        row->layer = (uint8_t)layer;
        row->category = category;
        row->decode = decode;
        /* Pairs with the acquire in find_extra(). */
        atomic_store_explicit(&extras, used + 1, memory_order_release);
    }
    ct_process_unlock();
    return found;
}

/* Whether an object that was loaded later is looked at, only the dynamic linker knows. */
static void *find_fallback(const char *name)
{
    struct ct_object object;
    void *found = ct_symbol_next(name, NULL, &object);
    return found && !object.at_start ? ct_next_symbol(name) : found;
}

void *ct_functions_fallback(uint32_t row)
{
    static void *_Atomic fallbacks[CT_NAMED_COUNT];
    if (row >= CT_NAMED_COUNT)
        return NULL;
    void *fallback = atomic_load_explicit(&fallbacks[row], memory_order_relaxed);
    if (!fallback) {
        fallback = find_fallback(ct_functions_name(row));
        atomic_store_explicit(&fallbacks[row], fallback, memory_order_relaxed);
    }
    return fallback;
}

bool ct_functions_known(const char *name)
{
    /* The table is sorted as strcmp sorts. */
    uint32_t low = 0, high = CT_ROW_COUNT;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = strcmp(name, names[middle]);
        if (order == 0)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

const char *ct_functions_name(uint32_t row)
{
    if (row < CT_ROW_COUNT)
        return names[row];
    return row < CT_NAMED_COUNT ? ct_runtime_name(row) : made_names[row - CT_NAMED_COUNT];
}

void ct_functions_forget_ids(void)
{
    for (uint32_t row = 0; row < CT_ROWS_ALL; row++) {
        atomic_store_explicit(&ct_rows[row].enter_id, 0, memory_order_relaxed);
        atomic_store_explicit(&ct_rows[row].leave_id, 0, memory_order_relaxed);
        atomic_store_explicit(&ct_rows[row].wrap_id, 0, memory_order_relaxed);
        atomic_store_explicit(&ct_rows[row].id, 0, memory_order_relaxed);
    }
}
