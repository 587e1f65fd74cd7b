/* dlsym and dlvsym come here from the trampoline's file, cuGetProcAddress from the decoder of its own row.
 *
 * A program finds what it would have found without the hook. Where that is the driver's own function, and its
 * calls do not come by a slot, it gets the stub. */
#include "lookup.h"

#include "driver_addresses.h"
#include "driver_functions.h"
#include "loader.h"
#include "rows.h"
#include "runtime_functions.h"

#include <dlfcn.h>

struct ct_dlsym_result {
    void *pointer;
    uint64_t tail; /* 1: not for us, jump to the real dlsym */
};
/* The handlers of the entries, which they leave for those of the same name in loader.h. */
struct ct_dlsym_result ct_dlsym(void *handle, const char *name, const void *caller);
struct ct_dlsym_result ct_dlsym_of_library(void *handle, const char *name, const void *caller);
struct ct_dlsym_result ct_dlvsym(void *handle, const char *name, const char *version);
static const struct ct_dlsym_result on = { NULL, 1 };

/* A runtime function is known by its address. Where the order of libraries decides, the hook need not find
 * what the caller would: then the real dlsym goes on. */
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

/* Names are compared here by hand: a sanitizer that looks up what it stands in front of is not ready to
 * compare them. */
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

/* ---- what the caller would find ---- */

/* A search in the order of loading, behind the caller's object. */
struct search {
    const char *name;
    const void *caller; /* an address in it: its dynamic section */
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

/* Looks in the caller's own dependencies, as for an object that was loaded for itself. */
static void *find_in_scope(const struct ct_object *caller, const char *name, bool is_next)
{
    struct ct_scope scope;
    ct_scope_collect(caller, &scope);
    for (uint32_t i = is_next; i < scope.count; i++) {
        void *found = ct_symbol_in(&scope.objects[i], name, NULL);
        if (found)
            return found;
    }
    return NULL;
}

/* True if all see the driver, though it was loaded later: a function that it alone defines is found. */
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

/* Everyone finds what the hook finds, and else what is his own. */
static void *find_default(const struct ct_object *caller, const char *name)
{
    void *found = ct_loader_symbol(RTLD_DEFAULT, name);
    return found || caller->at_start ? found : find_in_scope(caller, name, false);
}

/* The driver's function of that name, if it is what the look-up finds that `caller` makes; else NULL. */
static void *find_as(void *handle, const char *name, const void *caller)
{
    struct ct_object object;
    if (!ct_symbol_object_at(caller, &object))
        return NULL;
    void *found = handle == RTLD_NEXT ? find_next(&object, name) : find_default(&object, name);
    if (!found || !ct_driver_has(found))
        return NULL;
    ct_loader_symbol(RTLD_DEFAULT, "dlsym"); /* a success, which ends a pending dlerror() */
    return found;
}

/* ---- the ways in ---- */

/* Takes any name: what is looked up may have been loaded just now, with what wants the driver. "cu" and
 * "cuda" and an upper-case letter are for us. The order of look-ups matters: the last one must be the one
 * whose dlerror() the application may ask for. */
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

/* The driver's functions have no version, and any finds them. Whoever asks for the C library's dlsym, to pass
 * others by, gets an entry of ours, which goes on to that. */
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
