/* Interposes dladdr() and dladdr1(), for functions replaced by a stub. Package loaders locate libraries by a
 * function's address, so the result must describe the real function. */
#include "rows.h"
#include "symbol.h"

#include <dlfcn.h>
#include <link.h>

typedef int dladdr_function(const void *address, Dl_info *info);
typedef int dladdr1_function(const void *address, Dl_info *info, void **extra, int flags);
int ct_dladdr_entry(const void *address, Dl_info *info) __asm__("dladdr");
int ct_dladdr1_entry(const void *address, Dl_info *info, void **extra, int flags) __asm__("dladdr1");

/* Returns the row whose stub is at the address, or CT_ROWS_ALL if there is no such row. A runtime function's
 * exported entry point immediately precedes its stub. */
static uint32_t row_at(uintptr_t address)
{
    enum { ALIGNMENT = 16, EXPORTED_BYTES = 32 };
    for (uint32_t row = 0; row < CT_STUB_COUNT && address % ALIGNMENT == 0; row++) {
        const uintptr_t stub = (uintptr_t)ct_row_stub(row);
        const bool is_runtimes = row >= CT_ROW_COUNT && row < CT_SECOND_FIRST;
        if (stub == address || (is_runtimes && stub > address && stub - address < EXPORTED_BYTES))
            return row;
    }
    return CT_ROWS_ALL;
}

/* Returns the real function for a stub's address, and any other address unchanged. */
static const void *real_at(const void *address)
{
    /* Defined by the linker. */
    extern const char __ehdr_start[] CT_LOCAL, _end[] CT_LOCAL;
    if ((const char *)address < __ehdr_start || (const char *)address >= _end)
        return address;
    const uint32_t row = row_at((uintptr_t)address);
    const void *real = row < CT_ROWS_ALL ? ct_rows[row].real : NULL;
    if (!real && row < CT_SECOND_FIRST) /* stub not yet called or looked up */
        real = ct_symbol_next(ct_row_symbol(row), NULL);
    return real ? real : address;
}

/* Any thread may be the first to look up dladdr1(), since all write the same value. musl has no dladdr1(). */
static void *find_once(void *_Atomic *place, const char *name)
{
    void *found = atomic_load_explicit(place, memory_order_relaxed);
    if (CT_UNLIKELY(!found)) {
        found = ct_symbol_of_library(name);
        atomic_store_explicit(place, found, memory_order_relaxed);
    }
    return found;
}

__attribute__((visibility("default"))) int ct_dladdr_entry(const void *address, Dl_info *info)
{
    static void *_Atomic place;
    dladdr_function *next = (dladdr_function *)(uintptr_t)find_once(&place, "dladdr");
    return next ? next(real_at(address), info) : 0;
}

__attribute__((visibility("default"))) int ct_dladdr1_entry(const void *address, Dl_info *info, void **extra,
                                                            int flags)
{
    static void *_Atomic place;
    dladdr1_function *next = (dladdr1_function *)(uintptr_t)find_once(&place, "dladdr1");
    return next ? next(real_at(address), info, extra, flags) : 0;
}
