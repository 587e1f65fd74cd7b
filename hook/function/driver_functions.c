#include "driver_functions.h"

#include "current.h"
#include "driver_addresses.h"
#include "exchanged.h"
#include "imports.h"
#include "loader.h"
#include "rows.h"
#include "slots.h"
#include "system.h"
#include "test_point.h"
#include "visit.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>

/* Images of libcuda, in the order in which they were found. */
static struct driver {
    struct ct_link_scope scope;        /* the image and its dependencies */
    _Atomic bool is_claimed, is_found; /* the scope is being written; the scope is complete */
    _Atomic bool is_known;             /* the image's rows are filled in and published */
    uint32_t exported, slots, refused; /* number of exported functions, of functions intercepted by slots, and
                                        * of slots that are not writable */
    bool is_due, was_exchanged; /* whether the image's slots must still be exchanged, and whether they have
                                 * been; written with the process lock held */
    bool has_made;              /* a visit has created slots for some functions, perhaps not all */
} drivers[CT_DRIVERS];

static struct driver *const first = &drivers[0], *const second = &drivers[1];

struct search {
    const struct driver *driver;
    struct ct_object object;
};

static bool is_other(const struct driver *driver, const struct ct_object *object)
{
    return driver == first || object->dynamic != first->scope.objects[0].dynamic;
}

static bool is_driver(const struct ct_object *object, void *data)
{
    struct search *search = data;
    if (!ct_symbol_is(object, CT_DRIVER_FILE) || !is_other(search->driver, object))
        return false;
    search->object = *object;
    return true;
}

static bool is_in_namespace(void *handle, struct search *search)
{
    return ct_loader_in_namespace(handle, CT_DRIVER_FILE, &search->object) &&
           is_other(search->driver, &search->object);
}

/* If the program is linked to the driver, the hook may find the driver before the constructors run. A driver
 * loaded later must not be found until the constructors have run. Until then, the environment is not set up,
 * and pinning the driver with dlopen() would run pending constructors. If the C library's constructor were
 * among them, it would copy the environment from its own variable, which is still empty. The program would
 * then never see its environment (glibc 2.36). */
static bool find_driver(struct driver *driver, void *handle, bool is_asked)
{
    static struct ct_seen seen[CT_DRIVERS];
    struct ct_seen *const own_seen = &seen[driver - drivers];
    struct ct_arrivals arrivals;
    struct search search = { .driver = driver };
    if (atomic_load_explicit(&driver->is_found, memory_order_acquire))
        return true;
    const bool is_new = ct_symbol_arrivals(own_seen, &arrivals);
    const bool is_there = (is_new && ct_symbol_each_of(&arrivals, is_driver, &search)) ||
                          ((is_new || is_asked) && is_in_namespace(handle, &search));
    if (!is_there) {
        ct_symbol_see(own_seen, &arrivals);
        return false;
    }
    if ((!search.object.at_start && !ct_loader_ready()) || !ct_loader_pin(&search.object))
        return false;
    struct ct_link_scope found;
    ct_scope_collect(&search.object, &found);
    if (!atomic_exchange(&driver->is_claimed, true)) {
        driver->scope = found;
        atomic_store_explicit(&driver->is_found, true, memory_order_release);
    }
    return atomic_load_explicit(&driver->is_found, memory_order_acquire);
}

void *ct_driver_symbol(const char *name)
{
    return atomic_load_explicit(&first->is_found, memory_order_acquire)
               ? ct_scope_find(&first->scope, name, NULL, NULL)
               : NULL;
}

/* ---- entry points ---- */

/* 1 if every lookup must call the hook, since a library that has just been loaded may be the driver, or may
 * import driver functions by name. Read by the trampoline's dlsym. */
_Atomic uint32_t ct_dlsym_looks;

/* Called without the process lock, since the thread that holds the loader's lock may be waiting for the
 * process lock. Threads that race here write the same values. A second image is searched without its
 * dependencies, which may include the first image. */
static void look_all_up(struct driver *driver, void *_Atomic *exports)
{
    for (uint32_t function = 0; function < CT_ROW_COUNT; function++) {
        const char *name = ct_row_symbol(function);
        void *found =
            driver == first ? ct_driver_symbol(name) : ct_symbol_in(&driver->scope.objects[0], name, NULL);
        atomic_store_explicit(&exports[function], found, memory_order_relaxed);
    }
}

/* True if CUDATRACE_WAY restricts interception to names. */
static bool wants_names;

static void read_way(char **environment)
{
    static const char variable[] = CT_INTERCEPT_ENV "=";
    for (char **at = environment; at && *at; at++) {
        if (strncmp(*at, variable, sizeof(variable) - 1) == 0)
            wants_names = strcmp(*at + sizeof(variable) - 1, CT_INTERCEPT_NAMES_TEXT) == 0;
    }
}

static _Atomic uint16_t intercepts[CT_INTERCEPT_COUNT]; /* of the first image */
static _Atomic uint16_t images;

void ct_driver_tell(struct ct_segment *segment)
{
    for (int i = 0; segment && i < CT_INTERCEPT_COUNT; i++)
        atomic_store_explicit(&segment->intercepts[i],
                              atomic_load_explicit(&intercepts[i], memory_order_relaxed),
                              memory_order_relaxed);
    if (segment)
        atomic_store_explicit(&segment->drivers, atomic_load_explicit(&images, memory_order_relaxed),
                              memory_order_relaxed);
}

/* True if a library loaded later may import functions that are intercepted by name. */
static bool wants_looks(const struct driver *driver)
{
    return atomic_load(&driver->is_known) && (driver->slots == 0 || driver->refused > 0 || driver->has_made);
}

bool ct_driver_second_by_names(void)
{
    return atomic_load_explicit(&second->is_known, memory_order_acquire) && second->slots < second->exported;
}

/* Requires the process lock. */
static void note_ways(void)
{
    atomic_store_explicit(&ct_dlsym_looks, wants_looks(first) || wants_looks(second), memory_order_relaxed);
    atomic_store_explicit(&intercepts[CT_INTERCEPT_SLOTS], (uint16_t)first->slots, memory_order_relaxed);
    atomic_store_explicit(&intercepts[CT_INTERCEPT_NAMES], (uint16_t)(first->exported - first->slots),
                          memory_order_relaxed);
    atomic_store_explicit(&images, atomic_load(&first->is_known) + atomic_load(&second->is_known),
                          memory_order_relaxed);
    ct_driver_tell(ct_process_current());
}

/* Requires the process lock. */
static void fill_rows(struct driver *driver, void *_Atomic *exports)
{
    const uint32_t number = (uint32_t)(driver - drivers);
    driver->exported = driver->refused = 0;
    for (uint32_t function = 0; function < CT_ROW_COUNT; function++) {
        struct ct_row *row = &ct_rows[CT_DRIVER_ROW(number, function)];
        row->real = atomic_load_explicit(&exports[function], memory_order_relaxed);
        row->flags |= ct_row_form(ct_row_symbol(function));
        row->intercept = CT_INTERCEPT_NAMES;
        driver->exported += row->real != NULL;
    }
    if (!wants_names)
        driver->refused = ct_slots_find(number, &driver->scope.objects[0]);
    for (uint32_t function = 0; function < CT_ROW_COUNT; function++)
        ct_driver_remember(atomic_load_explicit(&exports[function], memory_order_relaxed),
                           CT_DRIVER_ROW(number, function));
}

/* ---- forks ---- */

/* A fork copies memory page by page while other threads write. In the child, only some slots might be
 * exchanged, or the slots' original addresses might be missing. A fork therefore waits until an exchange in
 * progress has finished, which takes microseconds. An exchange, in contrast, does not wait for a fork, since
 * the fork's handlers may be waiting for the exchanging thread. Instead, the exchange is left to the forking
 * thread, after the fork. */
static _Atomic uint32_t forks;     /* in progress */
static _Atomic bool is_exchanging; /* sequentially consistent, like `forks`, so that one thread sees the
                                    * other's store */

/* Exchanges the slots and publishes the driver, so that the child of a fork has either both changes or
 * neither. Requires the process lock. */
static void take_slots(struct driver *driver)
{
    atomic_store(&is_exchanging, true);
    driver->is_due = atomic_load(&forks) > 0;
    driver->slots = driver->is_due ? 0 : ct_slots_take((uint32_t)(driver - drivers));
    driver->was_exchanged |= !driver->is_due;
    atomic_store_explicit(&driver->is_known, true, memory_order_release);
    note_ways();
    if (driver == first)
        ct_driver_publish();
    atomic_store(&is_exchanging, false);
}

void ct_driver_fork_begins(void)
{
    atomic_fetch_add(&forks, 1);
    if (atomic_load(&is_exchanging) && ct_process_lock())
        ct_process_unlock();
    CT_TEST_POINT("driver_functions.fork_begun");
}

void ct_driver_fork_ends(void)
{
    uint32_t count = atomic_load(&forks);
    /* A fork that began before the handlers were registered is not counted. */
    while (count > 0 && !atomic_compare_exchange_weak(&forks, &count, count - 1))
        ;
    for (uint32_t i = 0; i < CT_DRIVERS; i++) {
        if (!drivers[i].is_due || !ct_process_lock())
            continue;
        if (drivers[i].is_due)
            take_slots(&drivers[i]);
        ct_process_unlock();
    }
}

void ct_driver_fork_child(void)
{
    atomic_store(&forks, 0);
    atomic_store(&is_exchanging, false);
    ct_exchanged_fork_child();
    for (uint32_t i = 0; i < CT_DRIVERS; i++) {
        struct driver *driver = &drivers[i];
        driver->is_due = false;
        if (driver->was_exchanged)
            continue;
        /* Another thread of the parent may have been writing the driver's data, which may therefore be
         * incomplete in the child. */
        atomic_store(&driver->is_found, false);
        atomic_store(&driver->is_claimed, false);
        atomic_store(&driver->is_known, false);
        if (driver == first)
            ct_driver_forget();
    }
}

void ct_driver_put_back(bool checks)
{
    first->is_due = second->is_due = first->has_made = false;
    ct_slots_put_back(checks);
}

static bool resolve(struct driver *driver)
{
    static void *_Atomic exports[CT_DRIVERS][CT_ROW_COUNT];
    void *_Atomic *own = exports[driver - drivers];
    look_all_up(driver, own);
    if (!ct_process_lock())
        return false;
    if (!atomic_load_explicit(&driver->is_known, memory_order_relaxed)) {
        fill_rows(driver, own);
        take_slots(driver);
    }
    ct_process_unlock();
    return true;
}

/* Waits until no thread is forking, but at most for a second, since a fork's handlers may be waiting for this
 * thread. */
static void await_forks(void)
{
    enum { TRIES = 1000, PAUSE_NS = 1000000 };
    for (int i = 0; i < TRIES && atomic_load(&forks) > 0 && ct_system_begin(); i++) {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
        ct_system_end();
    }
}

/* Requires the process lock. Ignores slots of functions that the hook does not know. */
static void add_made(const struct ct_visit *visit)
{
    const struct ct_visit_slot *slots = (const struct ct_visit_slot *)(uintptr_t)visit->slots;
    first->has_made = visit->slot_count > 0;
    for (uint32_t i = 0; i < visit->slot_count; i++)
        ct_slots_add_made(ct_driver_row((const void *)(uintptr_t)slots[i].export),
                          (void **)(uintptr_t)slots[i].slot);
}

bool ct_driver_take_late(const struct ct_visit *visit)
{
    await_forks();
    if (!ct_driver_look(RTLD_DEFAULT, true) || !ct_process_lock())
        return false;
    add_made(visit);
    bool is_taken = false;
    for (uint32_t i = 0; i < CT_DRIVERS; i++) {
        if (!atomic_load(&drivers[i].is_known))
            continue;
        take_slots(&drivers[i]);
        /* Another fork may have begun. Its thread then exchanges the slots. */
        is_taken |= drivers[i].slots > 0 || drivers[i].is_due;
    }
    ct_process_unlock();
    ct_imports_take();
    atomic_store_explicit(&ct_dlsym_looks, 1, memory_order_relaxed);
    return is_taken;
}

extern const char *gnu_get_libc_version(void) __attribute__((weak));

/* Returns true if a second image has just been found. */
static bool look_for_second(void *handle, bool is_asked)
{
    return !atomic_load_explicit(&second->is_known, memory_order_acquire) &&
           find_driver(second, handle, is_asked) && resolve(second);
}

bool ct_driver_look(void *handle, bool is_asked)
{
    const bool known = ct_driver_is_known();
    if (!gnu_get_libc_version) /* the program uses another C library */
        return false;
    if (!known && !(find_driver(first, handle, is_asked) && resolve(first)))
        return false;
    const bool has_come = look_for_second(handle, is_asked);
    if (!known || has_come || atomic_load_explicit(&ct_dlsym_looks, memory_order_relaxed))
        ct_imports_take();
    return true;
}

/* Runs before all other constructors (-z initfirst), when the program has been linked but none of its code
 * has run. Calling a C library function that a sanitizer interposes may make the sanitizer initialise itself
 * and look up symbols, so `ct_dlsym_looks` is set last. */
__attribute__((constructor)) static void look_at_start(int argc, char **argv, char **environment)
{
    (void)argc, (void)argv;
    if (!gnu_get_libc_version || ct_symbol_is_visitor()) /* other C libraries pass no environment */
        return;
    read_way(environment);
    if (!ct_driver_look(RTLD_DEFAULT, false))
        atomic_store_explicit(&ct_dlsym_looks, 1, memory_order_relaxed);
}
