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

#include <dlfcn.h>
#include <string.h>
#include <time.h>

/* libcuda and what it needs, from the moment on at which it was found; the claim is 1 while it is written. */
static struct ct_scope libcuda;
static _Atomic bool libcuda_claimed, libcuda_known;

#define DRIVER "libcuda.so.1"

static bool is_driver(const struct ct_object *object, void *data)
{
    if (!ct_symbol_is(object, DRIVER))
        return false;
    *(struct ct_object *)data = *object;
    return true;
}

/* One that the program was linked against may be found before the constructors. One that is loaded later may
 * not: the environment is not there yet, and pinning it by dlopen() runs those that have not run yet. Were
 * the C library's among them, it would take the environment from itself, where there is none, and the program
 * would never see its own (glibc 2.36). */
static bool find_driver(void *handle, bool is_asked)
{
    static struct ct_seen seen;
    struct ct_arrivals arrivals;
    struct ct_object object;
    if (atomic_load_explicit(&libcuda_known, memory_order_acquire))
        return true;
    const bool is_new = ct_symbol_arrivals(&seen, &arrivals);
    const bool is_there = (is_new && ct_symbol_each_of(&arrivals, is_driver, &object)) ||
                          ((is_new || is_asked) && ct_loader_in_namespace(handle, DRIVER, &object));
    if (!is_there) {
        ct_symbol_see(&seen, &arrivals);
        return false;
    }
    if ((!object.at_start && !ct_loader_ready()) || !ct_loader_pin(&object))
        return false;
    struct ct_scope found;
    ct_scope_collect(&object, &found);
    if (!atomic_exchange(&libcuda_claimed, true)) {
        libcuda = found;
        atomic_store_explicit(&libcuda_known, true, memory_order_release);
    }
    return atomic_load_explicit(&libcuda_known, memory_order_acquire);
}

void *ct_driver_symbol(const char *name)
{
    return atomic_load_explicit(&libcuda_known, memory_order_acquire)
               ? ct_scope_find(&libcuda, name, NULL, NULL)
               : NULL;
}

/* ---- the ways in ---- */

/* Tells the trampoline's dlsym whether each look-up comes here: 1 while what was loaded just now may be the
 * driver, or want it by name. */
_Atomic uint32_t ct_dlsym_looks;

/* The look-ups may wait for the loader's lock, whose holder may be waiting for ours: they come before ours is
 * taken. Threads that race here write the same. */
static void look_all_up(void *_Atomic *exports)
{
    for (uint32_t row = 0; row < CT_ROW_COUNT; row++)
        atomic_store_explicit(&exports[row], ct_driver_symbol(ct_row_name(row)), memory_order_relaxed);
}

/* CUDATRACE_WAY asks for names alone. */
static bool wants_names;

static void read_way(char **environment)
{
    static const char variable[] = CT_WAY_ENV "=";
    for (char **at = environment; at && *at; at++) {
        if (strncmp(*at, variable, sizeof(variable) - 1) == 0)
            wants_names = strcmp(*at + sizeof(variable) - 1, CT_WAY_NAMES_TEXT) == 0;
    }
}

static _Atomic uint16_t ways[CT_WAY_COUNT];

void ct_driver_tell(struct ct_segment *segment)
{
    for (int way = 0; segment && way < CT_WAY_COUNT; way++)
        atomic_store_explicit(&segment->ways[way], atomic_load_explicit(&ways[way], memory_order_relaxed),
                              memory_order_relaxed);
}

/* How many functions the driver exports, and how many slots of its table may not be written. */
static uint32_t exported, refused;

/* The process lock is held. */
static void fill_rows(void *_Atomic *exports)
{
    exported = refused = 0;
    for (uint32_t row = 0; row < CT_ROW_COUNT; row++) {
        ct_rows[row].real = atomic_load_explicit(&exports[row], memory_order_relaxed);
        ct_rows[row].flags |= ct_row_form(ct_row_name(row));
        ct_rows[row].way = CT_WAY_NAMES;
        ct_driver_remember(ct_rows[row].real, row);
        exported += ct_rows[row].real != NULL;
    }
    if (!wants_names)
        refused = ct_slots_find(&libcuda.objects[0]);
}

/* ---- forks ---- */

/* A fork copies memory page by page, while other threads write. Its child would get some slots exchanged and
 * others not, or slots without the addresses that they held. So a fork waits for an exchange, which takes
 * microseconds. An exchange does not wait for a fork, whose handlers may wait for this thread: the forking
 * thread makes it up. */
static _Atomic uint32_t forks;     /* in progress */
static _Atomic bool is_exchanging; /* Sequentially consistent, like the count of forks: one sees the other. */
static bool is_due, was_exchanged; /* written with the process lock */

/* The process lock is held. Publishes the driver, too, so that a child sees both or neither. */
static void take_slots(void)
{
    atomic_store(&is_exchanging, true);
    is_due = atomic_load(&forks) > 0;
    const uint32_t slots = is_due ? 0 : ct_slots_take();
    was_exchanged |= !is_due;
    atomic_store_explicit(&ct_dlsym_looks, slots == 0 || refused > 0, memory_order_relaxed);
    atomic_store_explicit(&ways[CT_WAY_SLOTS], (uint16_t)slots, memory_order_relaxed);
    atomic_store_explicit(&ways[CT_WAY_NAMES], (uint16_t)(exported - slots), memory_order_relaxed);
    ct_driver_tell(ct_process_current());
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
    /* A fork that began before the handlers were there is not counted. */
    while (count > 0 && !atomic_compare_exchange_weak(&forks, &count, count - 1))
        ;
    if (is_due && ct_process_lock()) {
        if (is_due)
            take_slots();
        ct_process_unlock();
    }
}

void ct_driver_fork_child(void)
{
    atomic_store(&forks, 0);
    atomic_store(&is_exchanging, false);
    ct_exchanged_fork_child();
    is_due = false;
    if (was_exchanged)
        return;
    /* What another thread of the parent was writing is not whole here. */
    atomic_store(&libcuda_known, false);
    atomic_store(&libcuda_claimed, false);
    ct_driver_forget();
}

void ct_driver_put_back(bool checks)
{
    is_due = false;
    ct_slots_put_back(checks);
}

static bool resolve(void)
{
    static void *_Atomic exports[CT_ROW_COUNT];
    look_all_up(exports);
    if (!ct_process_lock())
        return false;
    if (!ct_driver_is_known()) {
        fill_rows(exports);
        take_slots();
    }
    ct_process_unlock();
    return true;
}

/* Waits a second at most: handlers of the fork may wait for this thread. */
static void await_forks(void)
{
    enum { TRIES = 1000, PAUSE_NS = 1000000 };
    for (int i = 0; i < TRIES && atomic_load(&forks) > 0 && ct_system_begin(); i++) {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
        ct_system_end();
    }
}

uint32_t ct_driver_take_late(void)
{
    const bool was_known = ct_driver_is_known();
    await_forks();
    if (!ct_driver_look(RTLD_DEFAULT, true) || !ct_process_lock())
        return 0;
    if (was_known)
        take_slots();
    ct_process_unlock();
    ct_imports_take(&libcuda.objects[0]);
    atomic_store_explicit(&ct_dlsym_looks, 1, memory_order_relaxed);
    return atomic_load_explicit(&ways[CT_WAY_SLOTS], memory_order_relaxed);
}

extern const char *gnu_get_libc_version(void) __attribute__((weak));

bool ct_driver_look(void *handle, bool is_asked)
{
    const bool known = ct_driver_is_known();
    if (!gnu_get_libc_version) /* another C library's program */
        return false;
    if (!known && !(find_driver(handle, is_asked) && resolve()))
        return false;
    if (!known || atomic_load_explicit(&ct_dlsym_looks, memory_order_relaxed))
        ct_imports_take(&libcuda.objects[0]);
    return true;
}

/* Runs before all other constructors (-z initfirst): the program is linked, and nothing of it has run. A
 * sanitizer may begin inside, by a function of the C library's that it stands in front of, and looks symbols
 * up then: `ct_dlsym_looks` is set behind that. */
__attribute__((constructor)) static void look_at_start(int argc, char **argv, char **environment)
{
    (void)argc, (void)argv;
    if (!gnu_get_libc_version || ct_symbol_is_visitor()) /* another C library hands over no environment */
        return;
    read_way(environment);
    if (!ct_driver_look(RTLD_DEFAULT, false))
        atomic_store_explicit(&ct_dlsym_looks, 1, memory_order_relaxed);
}
