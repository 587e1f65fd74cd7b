/* A process may load more than one libcudart, and each knows only the kernels that were registered with it.
 * The symbols of a libcudart have its soname as their version. The hook exports each function once per
 * version, so the dynamic linker has resolved the version before a stub is entered. Nevertheless, a process
 * can contain several libraries with the same version, since wheels contain renamed copies
 * (libcudart-d0da41ae.so.11.0). The stub therefore checks its caller. The trampoline reads
 * `ct_runtime_callers`, a table of the pages that are known to be bound to the version's first library. A
 * call from such a page proceeds like any other. The first call from any other page ends up in this file, as
 * does every call from a page bound to another library.
 *
 * If a program finds a function with dlsym, the function's address identifies its library. Only the first
 * library's functions are replaced, with the stub's other entry point (ct_row_stub()), which does not check
 * the caller. */
#include "runtime_functions.h"

#include "bound.h"
#include "current.h"
#include "loader.h"
#include "stack.h"
#include "table.h"

#include <dlfcn.h>
#include <string.h>

/* The versions in the order of the stubs; see trampoline_x86_64.S and hook.map. */
static const char *const versions[CT_RUNTIME_VERSIONS] = {
    "libcudart.so.11.0",
    "libcudart.so.12",
    "libcudart.so.13",
};

/* A libcudart. Once it is in the list, the struct does not change, and the library stays loaded, since the
 * hook keeps a handle. */
struct library {
    uintptr_t base; /* its load address */
    uint32_t version;
    uint32_t reserved;
    void *real[CT_RUNTIME_FUNCTIONS];
};

enum { LIBRARIES_MAX = 16 };
static struct library *_Atomic libraries[LIBRARIES_MAX];
static _Atomic uint32_t library_count;
static struct library *_Atomic first[CT_RUNTIME_VERSIONS]; /* for each version, the library whose functions
                                                            * are in ct_rows */

_Atomic uint64_t ct_runtime_callers[CT_RUNTIME_VERSIONS][CT_RUNTIME_CALLERS];
/* Maps a page and a version to a library's index in `libraries` plus 1. Entries are never overwritten. */
static struct ct_table callers;

enum { PAGE_SHIFT = 12 };

/* ---- loaded libraries ---- */

/* The libraries with a given version among all loaded objects. */
struct census {
    const char *version;
    uint32_t count;
    bool has_soname;
    struct ct_object object; /* the first library whose soname is the version, or else the first library */
};

/* How many libraries of each version there were when they were last counted. */
static struct {
    struct ct_seen seen;
    _Atomic uint32_t count;
} counted[CT_RUNTIME_VERSIONS];

/* True if the object is a libcudart of the given version, according to the versions that it defines, or to
 * its soname if it defines none. */
static bool defines(const struct ct_object *object, const char *version, bool *has_soname)
{
    if (!object->soname)
        return false;
    *has_soname = strcmp(object->soname, version) == 0;
    return object->definitions ? ct_symbol_defines_version(object, version) : *has_soname;
}

static bool visit_object(const struct ct_object *object, void *data)
{
    struct census *census = data;
    bool has_soname = false;
    if (object->is_hook || !defines(object, census->version, &has_soname))
        return false;
    census->count++;
    if (census->count == 1 || (has_soname && !census->has_soname)) {
        census->object = *object;
        census->has_soname = has_soname;
    }
    return false;
}

static void take_census(uint32_t version, struct census *census)
{
    *census = (struct census){ .version = versions[version] };
    ct_symbol_each(visit_object, census);
}

/* Returns the number of loaded libraries with the given version. Unloaded libraries may still be counted. */
static uint32_t count_libraries(uint32_t version)
{
    struct ct_arrivals arrivals;
    if (ct_symbol_arrivals(&counted[version].seen, &arrivals)) {
        struct census census;
        take_census(version, &census);
        atomic_store_explicit(&counted[version].count, census.count, memory_order_relaxed);
        ct_symbol_see(&counted[version].seen, &arrivals);
    }
    return atomic_load_explicit(&counted[version].count, memory_order_relaxed);
}

/* ---- libraries ---- */

static struct library *find_library(uint32_t version, uintptr_t base)
{
    const uint32_t count = atomic_load_explicit(&library_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct library *library = atomic_load_explicit(&libraries[i], memory_order_relaxed);
        if (library->version == version && library->base == base)
            return library;
    }
    return NULL;
}

/* Reads the library's exports and keeps the library loaded. Calls the loader without the process lock, since
 * a thread that holds the loader's lock may be waiting for the process lock. */
static struct library *read_library(uint32_t version, const struct ct_object *object)
{
    struct library *library = ct_loader_pin(object) ? ct_pages_map(sizeof(*library)) : NULL;
    if (!library)
        return NULL;
    struct ct_link_scope scope;
    ct_scope_collect(object, &scope);
    library->version = version;
    library->base = object->base;
    for (uint32_t i = 0; i < CT_RUNTIME_FUNCTIONS; i++)
        library->real[i] = ct_scope_find(&scope, ct_row_symbol(CT_ROW_COUNT + i), NULL, NULL);
    return library;
}

/* Adds a library to the list. The first library with a given version fills in the rows for that version.
 * Returns NULL if there is no room. */
static struct library *list_library(struct library *library)
{
    if (!ct_process_lock())
        return NULL;
    struct library *listed = find_library(library->version, library->base);
    const uint32_t count = atomic_load_explicit(&library_count, memory_order_relaxed);
    if (!listed && count < LIBRARIES_MAX) {
        listed = library;
        atomic_store_explicit(&libraries[count], library, memory_order_relaxed);
        /* Pairs with the acquire in find_library(). */
        atomic_store_explicit(&library_count, count + 1, memory_order_release);
    }
    if (listed && !atomic_load_explicit(&first[library->version], memory_order_relaxed)) {
        for (uint32_t i = 0; i < CT_RUNTIME_FUNCTIONS; i++) {
            struct ct_row *row = &ct_rows[CT_RUNTIME_ROW(library->version, i)];
            row->real = listed->real[i];
            row->flags |= ct_row_form(ct_row_symbol(CT_ROW_COUNT + i));
        }
        /* Pairs with the acquire in find_first(). */
        atomic_store_explicit(&first[library->version], listed, memory_order_release);
    }
    ct_process_unlock();
    if (listed != library)
        ct_pages_unmap(library, sizeof(*library));
    return listed;
}

static struct library *find_first(uint32_t version)
{
    struct library *library = atomic_load_explicit(&first[version], memory_order_acquire);
    if (library || count_libraries(version) == 0)
        return library;
    struct census census;
    take_census(version, &census);
    struct library *read = census.count > 0 ? read_library(version, &census.object) : NULL;
    return read && list_library(read) ? atomic_load_explicit(&first[version], memory_order_acquire) : NULL;
}

/* Returns the library to bind the caller's reference to, as would happen without the hook: the first in the
 * process's lookup order, or else the first among the caller's own dependencies. If there is neither (for
 * example, after a jump from another object's code), returns the library whose functions are in the rows. */
static struct library *bound_library(uint32_t version, uint32_t function, const void *caller)
{
    struct library *fallback = find_first(version);
    struct ct_object object;
    /* Calls the dynamic linker, since only it knows which objects are in the global scope. musl has no symbol
     * versions. */
    void *real = ct_loader_versioned(RTLD_NEXT, ct_row_symbol(CT_ROW_COUNT + function), versions[version]);
    if (real)
        ct_symbol_object_at(real, &object);
    struct ct_link_scope scope;
    if (!real && ct_symbol_object_at(caller, &object)) {
        ct_scope_collect(&object, &scope);
        real = ct_scope_find(&scope, ct_row_symbol(CT_ROW_COUNT + function), versions[version], &object);
    }
    struct library *library = NULL;
    if (real) {
        library = find_library(version, object.base);
        if (!library) {
            struct library *read = read_library(version, &object);
            library = read ? list_library(read) : NULL;
        }
    }
    ct_loader_symbol(RTLD_DEFAULT, "dlsym"); /* clears the dlerror() of the failures above */
    return library ? library : fallback;
}

/* ---- calls ---- */

/* Returns the library's index in `libraries` plus 1, or 0 if it is not in the list. */
static uint32_t number_of(const struct library *library)
{
    const uint32_t count = atomic_load_explicit(&library_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        if (atomic_load_explicit(&libraries[i], memory_order_relaxed) == library)
            return i + 1;
    }
    return 0;
}

static struct library *library_of_caller(uint32_t version, uint32_t function, const void *caller)
{
    struct library *library = find_first(version);
    if (!library)
        return NULL;
    const uint64_t page = (uintptr_t)caller >> PAGE_SHIFT;
    const uint64_t key = page | (uint64_t)(version + 1) << 56;
    const uint32_t known = ct_table_get(&callers, key);
    if (known) {
        library = atomic_load_explicit(&libraries[known - 1], memory_order_relaxed);
    } else if (atomic_load_explicit(&counted[version].count, memory_order_relaxed) == 1 &&
               !ct_stack_is_plain()) {
        return library; /* without the loader, whose lock may not be available */
    } else {
        if (count_libraries(version) > 1)
            library = bound_library(version, function, caller);
        /* If this is a signal handler that interrupted the lock's holder, the lock is not available. The next
         * call from this page then repeats the search. */
        if (!ct_table_lock())
            return library;
        ct_table_set(&callers, key, number_of(library));
        ct_table_unlock();
    }
    /* From now on, the trampoline accepts calls from this page. No ordering is needed, since ct_enter()
     * checks the row itself. */
    if (library == atomic_load_explicit(&first[version], memory_order_relaxed))
        atomic_store_explicit(&ct_runtime_callers[version][page % CT_RUNTIME_CALLERS], page,
                              memory_order_relaxed);
    return library;
}

void *ct_runtime_real(uint32_t row, const void *caller)
{
    const uint32_t version = (row - CT_ROW_COUNT) / CT_RUNTIME_FUNCTIONS;
    const uint32_t function = (row - CT_ROW_COUNT) % CT_RUNTIME_FUNCTIONS;
    const struct library *library = library_of_caller(version, function, caller);
    return library ? library->real[function] : NULL;
}

void ct_runtime_look(void)
{
    for (uint32_t version = 0; version < CT_RUNTIME_VERSIONS; version++)
        find_first(version);
}

void *ct_runtime_known_stub(const void *real, uint32_t row)
{
    const uint32_t function = (row - CT_ROW_COUNT) % CT_RUNTIME_FUNCTIONS;
    for (uint32_t version = 0; version < CT_RUNTIME_VERSIONS; version++) {
        const struct library *library = atomic_load_explicit(&first[version], memory_order_acquire);
        if (library && library->real[function] == real)
            return ct_row_stub(CT_RUNTIME_ROW(version, function));
    }
    return NULL;
}

void *ct_runtime_stub(const void *real, uint32_t row)
{
    ct_runtime_look();
    return ct_runtime_known_stub(real, row);
}

/* For an object that was not loaded with the program, calls the dynamic linker, which alone knows whether it
 * searches that object. */
static void *find_elsewhere(const char *name)
{
    struct ct_object object;
    void *found = ct_symbol_next(name, &object);
    return found && !object.at_start ? ct_loader_next(name) : found;
}

void *ct_runtime_elsewhere(uint32_t row)
{
    static void *_Atomic elsewhere[CT_NAMED_COUNT];
    if (row >= CT_NAMED_COUNT)
        return NULL;
    void *found = atomic_load_explicit(&elsewhere[row], memory_order_relaxed);
    if (!found) {
        found = find_elsewhere(ct_row_name(row));
        atomic_store_explicit(&elsewhere[row], found, memory_order_relaxed);
    }
    return found;
}
