/* Function lookups. The trampolines call ct_dlsym() and ct_dlvsym(), and the decoder of cuGetProcAddress
 * calls ct_lookup_replace().
 *
 * A lookup returns the same result as without the hook, with one exception: for a driver function that is not
 * intercepted by its slot, it returns the function's stub. */
#include "lookup.h"

#include "driver_addresses.h"
#include "driver_functions.h"
#include "loader.h"
#include "rows.h"
#include "runtime_functions.h"

#include <dlfcn.h>

struct ct_dlsym_result {
    void *pointer;
    uint64_t tail; /* 1: not handled here, jump to the real dlsym */
};
/* Called by the trampolines. Lookups that these functions do not handle are left to the real dlsym() and
 * dlvsym() (loader.h). */
struct ct_dlsym_result ct_dlsym(void *handle, const char *name, const void *caller);
struct ct_dlsym_result ct_dlsym_of_library(void *handle, const char *name, const void *caller);
struct ct_dlsym_result ct_dlvsym(void *handle, const char *name, const char *version);
static const struct ct_dlsym_result on = { NULL, 1 };

/* A runtime function is recognized by its address. If the result depends on the order of libraries, the hook
 * might find a different function than the caller would, so the lookup is left to the real dlsym. */
static struct ct_dlsym_result runtime_symbol(ct_dlsym_function *next, void *handle, const char *name)
{
    const bool searches = handle == RTLD_DEFAULT || handle == RTLD_NEXT;
    const uint32_t row = ct_row_of_runtime(name);
    if (row == CT_ROWS_ALL)
        return on;
    void *pointer = next(handle, name);
    void *stub = pointer ? ct_runtime_stub(pointer, row) : NULL;
    if (stub || !searches)
        return (struct ct_dlsym_result){ stub ? stub : pointer, 0 };
    return on;
}

/* Compares names without the C library, since a sanitizer's strcmp() does not work until it has looked up the
 * functions that it interposes. */
static bool begins(const char *name, const char *with)
{
    while (*with && *name == *with) {
        name++;
        with++;
    }
    return *with == '\0';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_drivers(const char *name)
{
    return begins(name, "cu") && is_upper(name[2]);
}

/* ---- the caller's own result ---- */

/* A search in load order, starting after the caller's object. */
struct search {
    const char *name;
    const void *caller; /* an address in the caller's object: its dynamic section */
    bool behind;
    void *found;
    bool at_start;
};

static bool is_behind(const struct ct_object *object, void *data)
{
    struct search *search = data;
    if (search->behind && !object->is_hook)
        search->found = ct_symbol_in(object, search->name, NULL);
    search->behind |= object->dynamic == search->caller;
    search->at_start = object->at_start;
    return search->found != NULL;
}

/* Searches the caller's own dependencies, just as the loader does for an object loaded with RTLD_LOCAL. */
static void *find_in_scope(const struct ct_object *caller, const char *name, bool is_next)
{
    struct ct_link_scope scope;
    ct_scope_collect(caller, &scope);
    for (uint32_t i = is_next; i < scope.count; i++) {
        void *found = ct_symbol_in(&scope.objects[i], name, NULL);
        if (found)
            return found;
    }
    return NULL;
}

/* True if the driver is in the global scope although it was not loaded with the program. Looks up a function
 * that no object before the driver defines. */
static bool driver_is_global(void)
{
    for (uint32_t row = 0; row < CT_ROW_COUNT; row++) {
        const void *found = ct_driver_symbol(ct_row_name(row));
        struct search search = { .name = ct_row_name(row), .behind = true };
        if (found && ct_symbol_each(is_behind, &search) && search.found == found)
            return ct_loader_symbol(RTLD_DEFAULT, ct_row_name(row)) == found;
    }
    return false;
}

static void *find_next(const struct ct_object *caller, const char *name)
{
    struct search search = { .name = name, .caller = caller->dynamic };
    if (!caller->at_start)
        return find_in_scope(caller, name, true);
    if (!ct_symbol_each(is_behind, &search))
        return NULL;
    return search.at_start || driver_is_global() ? search.found : NULL;
}

/* Searches the global scope, which is the same for all objects, and then the caller's dependencies unless the
 * caller was loaded with the program. */
static void *find_default(const struct ct_object *caller, const char *name)
{
    void *found = ct_loader_symbol(RTLD_DEFAULT, name);
    return found || caller->at_start ? found : find_in_scope(caller, name, false);
}

/* Returns the driver function called `name` if a lookup by `caller` would find it, and NULL otherwise. */
static void *find_as(void *handle, const char *name, const void *caller)
{
    struct ct_object object;
    if (!ct_symbol_object_at(caller, &object))
        return NULL;
    void *found = handle == RTLD_NEXT ? find_next(&object, name) : find_default(&object, name);
    if (!found || !ct_driver_has(found))
        return NULL;
    ct_loader_symbol(RTLD_DEFAULT, "dlsym"); /* this lookup succeeds, which clears a pending dlerror() */
    return found;
}

/* ---- entry points ---- */

/* May be called with any name, since a library that uses the driver may just have been loaded. Handles names
 * that begin with "cu" or "cuda" followed by an upper-case letter. The order of lookups matters, since the
 * application may read the last one's dlerror(). */
static struct ct_dlsym_result look_up(ct_dlsym_function *next, void *handle, const char *name,
                                      const void *caller)
{
    const bool is_driver = is_drivers(name);
    const bool known = ct_driver_look(handle, is_driver);
    if (begins(name, "cuda") && is_upper(name[4]))
        return runtime_symbol(next, handle, name);
    if (!is_driver || !known)
        return on;
    void *of_driver = ct_driver_symbol(name);
    const bool stays = !of_driver || (ct_driver_has(of_driver) && !ct_driver_stub(of_driver));
    if (stays && !ct_driver_second_by_names())
        return on;
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) {
        void *found = find_as(handle, name, caller);
        return found ? (struct ct_dlsym_result){ ct_driver_instead(found, NULL), 0 } : on;
    }
    void *found = next(handle, name);
    const bool is_its = found && (found == of_driver || ct_driver_has(found));
    return (struct ct_dlsym_result){ is_its ? ct_driver_instead(found, name) : found, 0 };
}

struct ct_dlsym_result ct_dlsym(void *handle, const char *name, const void *caller)
{
    return look_up(ct_dlsym_find(), handle, name, caller);
}

struct ct_dlsym_result ct_dlsym_of_library(void *handle, const char *name, const void *caller)
{
    return look_up(ct_library_dlsym_find(), handle, name, caller);
}

/* Driver functions have no version, so a lookup with any version finds them. If a program looks up the C
 * library's dlsym to bypass interposers, it gets an entry point of the hook that calls that dlsym. */
struct ct_dlsym_result ct_dlvsym(void *handle, const char *name, const char *version)
{
    const bool is_driver = is_drivers(name);
    const bool known = ct_driver_look(handle, is_driver);
    const bool searches = handle == RTLD_DEFAULT || handle == RTLD_NEXT;
    void *of_driver = known && is_driver && !searches ? ct_driver_symbol(name) : NULL;
    const bool is_dlsym = begins(name, "dlsym") && name[sizeof("dlsym") - 1] == '\0';
    if (!is_dlsym && !ct_driver_stub(of_driver))
        return on;
    void *found = ct_loader_versioned(handle, name, version);
    if (is_dlsym && found == (void *)(uintptr_t)ct_library_dlsym_find())
        found = ct_row_stub(CT_LIBRARY_DLSYM);
    return (struct ct_dlsym_result){ found && found == of_driver ? ct_driver_stub(found) : found, 0 };
}

void ct_lookup_replace(void **answer, const char *name)
{
    *answer = ct_driver_instead(*answer, name);
}
