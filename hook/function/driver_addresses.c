#include "driver_addresses.h"

#include "loader.h"
#include "rows.h"

/* A hash table with open addressing. Entries are added under the process lock, and never change. The table is
 * static, so adding an entry cannot fail for lack of memory. */
enum { ADDRESS_BITS = 12, ADDRESS_SLOTS = 1 << ADDRESS_BITS };
static_assert(ADDRESS_SLOTS > 2 * CT_DRIVERS * CT_ROW_COUNT, "half empty");
static struct {
    _Atomic(const void *) real;
    uint32_t row;
} addresses[ADDRESS_SLOTS];
static _Atomic bool published;

void ct_driver_publish(void)
{
    /* Pairs with the acquire in ct_driver_is_known(). */
    atomic_store_explicit(&published, true, memory_order_release);
}

void ct_driver_forget(void)
{
    atomic_store_explicit(&published, false, memory_order_relaxed);
}

bool ct_driver_is_known(void)
{
    return atomic_load_explicit(&published, memory_order_acquire);
}

/* Returns the index in the table where an address is stored, or would be stored. Sets *there to the address
 * stored there, or to NULL if the entry is empty. */
static size_t address_place(const void *real, const void **there)
{
    size_t place = ((uint64_t)(uintptr_t)real * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - ADDRESS_BITS);
    /* Pairs with the release in ct_driver_remember(). */
    while ((*there = atomic_load_explicit(&addresses[place].real, memory_order_acquire)) && *there != real)
        place = (place + 1) % ADDRESS_SLOTS;
    return place;
}

/* If a function were exported under two names, it would keep its first row, but the driver exports no
 * function twice. */
void ct_driver_remember(const void *real, uint32_t row)
{
    const void *there;
    const size_t place = address_place(real, &there);
    if (!real || there)
        return;
    addresses[place].row = row;
    atomic_store_explicit(&addresses[place].real, real, memory_order_release);
}

uint32_t ct_driver_row(const void *real)
{
    const void *there;
    if (!real || !ct_driver_is_known())
        return CT_ROWS_ALL;
    const size_t place = address_place(real, &there);
    return there ? addresses[place].row : CT_ROWS_ALL;
}

bool ct_driver_has(const void *real)
{
    return ct_driver_row(real) != CT_ROWS_ALL;
}

void *ct_driver_stub(const void *real)
{
    const uint32_t row = ct_driver_row(real);
    return row != CT_ROWS_ALL && ct_rows[row].intercept == CT_INTERCEPT_NAMES ? ct_row_stub(row) : NULL;
}

void *ct_driver_instead(void *real, const char *name)
{
    if (ct_driver_has(real)) {
        void *stub = ct_driver_stub(real);
        return stub ? stub : real;
    }
    if (!name || ct_loader_is_own(real))
        return real;
    const uint32_t row = ct_row_fallback(real, name);
    return row == CT_ROWS_ALL ? real : ct_row_stub(row);
}
