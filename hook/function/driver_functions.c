#include "driver_functions.h"

#include "current.h"
#include "loader.h"
#include "rows.h"

/* Real functions to rows: open addressing, filled once and then only read; here, so that no stub is missed
 * for want of memory. */
enum { ADDRESS_SLOTS = 2048 };
static_assert(ADDRESS_SLOTS > 2 * CT_ROW_COUNT, "half empty");
static struct {
    const void *real;
    uint32_t row;
} addresses[ADDRESS_SLOTS];
static _Atomic bool resolved;

/* libcuda and what it needs, from the moment on at which it was found; the claim is 1 while it is written. */
static struct ct_scope libcuda;
static _Atomic bool libcuda_claimed, libcuda_known;

/* Not before the constructors: the environment is not there yet, and dlopen() runs those that have not run
 * yet. Were the C library's among them, it would take the environment from itself, where there is none, and
 * the program would never see its own (glibc 2.36). */
void *ct_driver_symbol(const char *name)
{
    if (CT_LIKELY(atomic_load_explicit(&libcuda_known, memory_order_acquire)))
        return ct_scope_find(&libcuda, name, NULL, NULL);
    struct ct_object object;
    if (!ct_loader_ready() || !ct_symbol_object("libcuda.so.1", &object) || !ct_loader_pin(&object))
        return NULL;
    struct ct_scope found;
    ct_scope_collect(&object, &found);
    if (!atomic_exchange(&libcuda_claimed, true)) {
        libcuda = found;
        atomic_store_explicit(&libcuda_known, true, memory_order_release);
    }
    return ct_scope_find(&found, name, NULL, NULL);
}

/* The look-ups may wait for the loader's lock, whose holder may be waiting for ours: they come before ours is
 * taken. Threads that race here write the same. */
static bool look_all_up(void)
{
    if (!ct_driver_symbol("cuInit"))
        return false;
    for (uint32_t row = 0; row < CT_ROW_COUNT; row++)
        ct_rows[row].real = ct_driver_symbol(ct_row_name(row));
    return true;
}

/* The slot that the address has, or would have. */
static size_t address_slot(const void *real)
{
    size_t slot = ((uint64_t)(uintptr_t)real * UINT64_C(0x9e3779b97f4a7c15)) >> 53;
    while (addresses[slot].real && addresses[slot].real != real)
        slot = (slot + 1) % ADDRESS_SLOTS;
    return slot;
}

/* A function that is exported under two names keeps the first: the driver has none such. */
static void remember(const void *real, uint32_t row)
{
    const size_t slot = address_slot(real);
    if (real && !addresses[slot].real) {
        addresses[slot].row = row;
        addresses[slot].real = real;
    }
}

bool ct_driver_resolve(void)
{
    if (atomic_load_explicit(&resolved, memory_order_acquire))
        return true;
    if (!look_all_up() || !ct_process_lock())
        return false;
    if (!atomic_load_explicit(&resolved, memory_order_relaxed)) {
        for (uint32_t row = 0; row < CT_ROW_COUNT; row++) {
            ct_rows[row].flags |= ct_row_form(ct_row_name(row));
            remember(ct_rows[row].real, row);
        }
        /* Pairs with the acquire above. */
        atomic_store_explicit(&resolved, true, memory_order_release);
    }
    ct_process_unlock();
    return true;
}

void *ct_driver_stub(const void *real)
{
    if (!real || !atomic_load_explicit(&resolved, memory_order_acquire))
        return NULL;
    const size_t slot = address_slot(real);
    return addresses[slot].real ? ct_row_stub(addresses[slot].row) : NULL;
}

void *ct_driver_spare(void *real, const char *name)
{
    const uint32_t row = ct_row_spare(real, name);
    return row == CT_ROWS_ALL ? NULL : ct_row_stub(row);
}

/* Only the dynamic linker knows whether an object that was loaded later is looked at. */
static void *find_fallback(const char *name)
{
    struct ct_object object;
    void *found = ct_symbol_next(name, &object);
    return found && !object.at_start ? ct_loader_next(name) : found;
}

void *ct_driver_fallback(uint32_t row)
{
    static void *_Atomic fallbacks[CT_NAMED_COUNT];
    if (row >= CT_NAMED_COUNT)
        return NULL;
    void *fallback = atomic_load_explicit(&fallbacks[row], memory_order_relaxed);
    if (!fallback) {
        fallback = find_fallback(ct_row_name(row));
        atomic_store_explicit(&fallbacks[row], fallback, memory_order_relaxed);
    }
    return fallback;
}
