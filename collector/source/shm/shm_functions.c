/* The functions of a process: entries of its segment's directory, looked up when they are called first, their
 * sums in a batch, and the counters of calls that the hook saw and did not send. What a process has in its
 * directory and never calls costs nothing. Called by process.c and lane.c. */
#include "category.h"
#include "ioctl_names.h"
#include "shm_process.h"
#include "selection.h"

#include <stdlib.h>
#include <string.h>

static const char *const category_names[CT_CATEGORY_COUNT] = {
#define CATEGORY(name) #name,
#include "category.def"
#undef CATEGORY
};

static struct ct_function *directory(const struct ct_process *process)
{
    return (struct ct_function *)(void *)((uint8_t *)process->shared + CT_DIRECTORY_OFFSET);
}

/* A name as the database may have it: printable ASCII, ended. */
static void copy_name(char *to, const char *from)
{
    size_t i = 0;
    for (; i < CT_FUNCTION_NAME_MAX && from[i]; i++)
        to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    to[i] = '\0';
}

void ct_process_read_directory(struct ct_process *process)
{
    const uint32_t published = atomic_load_explicit(&process->shared->functions, memory_order_acquire);
    if (published > process->facts.function_slots)
        process->broken = "its directory is longer than it has room for";
    else if (published > process->published)
        process->published = published;
}

/* ---- looking up ---- */

/* The number that the trace has for the entry's function; one that it does not know takes of the user's share
 * of names. 0, and nothing said, where there is none for it. */
static int look_up(struct ct_process *process, struct ct_batch *batch, struct ct_process_function *function)
{
    struct ct_function entry;
    memcpy(&entry, &directory(process)[function->entry], sizeof(entry));
    char name[CT_FUNCTION_NAME_MAX + 1], translated[CT_IOCTL_NAME_MAX + 1];
    copy_name(name, entry.name);
    const bool is_translated =
        entry.layer == CT_LAYER_IOCTL && ct_ioctl_names_find(name, ct_ioctl_driver_release(), translated, &entry.category);
    const char *layer = ct_layer_names[entry.layer < CT_LAYER_COUNT ? entry.layer : CT_LAYER_DRIVER];
    const char *category =
        category_names[entry.category < CT_CATEGORY_COUNT ? entry.category : CT_CATEGORY_other];
    const char *known_as = is_translated ? translated : name;
    function->is_driver = entry.layer == CT_LAYER_DRIVER;
    if (ct_store_find_function(batch->store, layer, known_as, &function->function_id) != 0)
        return -1;
    if (function->function_id != 0 ||
        !ct_share_take(batch->held, process->user ? &process->user->worker_has : NULL, CT_SHARED_NAMES, 0))
        return 0;
    return ct_store_function(batch->store, layer, known_as, category, &function->function_id);
}

/* Those for which there is no share are counted under this name. */
static int look_up_other(struct ct_batch *batch, struct ct_process_function *function)
{
    return ct_store_function(batch->store, ct_layer_names[CT_LAYER_DRIVER], "(other functions)",
                             category_names[CT_CATEGORY_other], &function->function_id);
}

/* Room for one more. The directory's places are taken with the first. */
static bool make_room(struct ct_process *process)
{
    if (!process->places)
        process->places = calloc(process->facts.function_slots, sizeof(*process->places));
    if (!process->places || process->function_count < process->function_room)
        return process->places != NULL;
    const uint32_t room = process->function_room ? process->function_room * 2 : 16;
    struct ct_process_function *functions = realloc(process->functions, room * sizeof(*functions));
    if (!functions)
        return false;
    process->functions = functions;
    process->function_room = room;
    return true;
}

/* The first place is that of all functions for which there is no share. */
static bool make_first(struct ct_process *process)
{
    if (process->function_count > 0)
        return true;
    if (!make_room(process))
        return false;
    process->functions[process->function_count++] =
        (struct ct_process_function){ .entry = UINT16_MAX, .is_driver = true };
    return true;
}

static bool take_place(struct ct_process *process, struct ct_batch *batch, uint32_t entry)
{
    if (!make_first(process) || !make_room(process))
        return false;
    struct ct_holding *his = process->user ? &process->user->worker_has : NULL;
    if (!ct_share_take(batch->held, his, CT_SHARED_FUNCTIONS, 0)) {
        process->places[entry] = 1;
        process->merged++;
        return true;
    }
    process->functions[process->function_count] = (struct ct_process_function){ .entry = (uint16_t)entry };
    process->places[entry] = (uint16_t)++process->function_count;
    return true;
}

struct ct_process_function *ct_process_function(struct ct_process *process, struct ct_batch *batch,
                                                uint32_t entry)
{
    static struct ct_process_function nobodys;
    nobodys = (struct ct_process_function){ 0 };
    if ((!process->places || process->places[entry] == 0) && !take_place(process, batch, entry)) {
        ct_store_short_of_memory(batch->store);
        return &nobodys;
    }
    const uint32_t place = process->places[entry] - 1U;
    struct ct_process_function *function = &process->functions[place];
    if (function->function_id != 0)
        return function;
    int error = place > 0 ? look_up(process, batch, function) : 0;
    if (!error && function->function_id == 0) {
        error = look_up_other(batch, function);
        process->merged += place > 0;
    }
    if (error)
        ct_store_break_off(batch->store);
    return function;
}

struct ct_total_facts *ct_process_total(struct ct_process *process, struct ct_batch *batch,
                                        struct ct_process_function *function)
{
    static struct ct_total_facts nobodys;
    nobodys = (struct ct_total_facts){ 0 };
    if (function->total > 0)
        return &process->totals[function->total - 1].facts;
    if (process->total_count == process->total_room) {
        const uint32_t room = process->total_room ? process->total_room * 2 : 16;
        struct ct_process_total *totals = realloc(process->totals, room * sizeof(*totals));
        if (!totals) {
            ct_store_short_of_memory(batch->store);
            return &nobodys;
        }
        process->totals = totals;
        process->total_room = room;
    }
    process->totals[process->total_count] =
        (struct ct_process_total){ .function = (uint32_t)(function - process->functions) };
    function->total = ++process->total_count;
    return &process->totals[process->total_count - 1].facts;
}

/* ---- saving ---- */

static int save_totals(struct ct_process *process, struct ct_batch *batch)
{
    for (uint32_t i = 0; i < process->total_count; i++) {
        struct ct_process_function *function = &process->functions[process->totals[i].function];
        function->total = 0;
        if (ct_store_add_total(batch->store, process->process_id, function->function_id,
                               &process->totals[i].facts) != 0)
            return -1;
    }
    if (process->total_count == 0) {
        free(process->totals);
        process->totals = NULL;
        process->total_room = 0;
    }
    process->total_count = 0;
    return 0;
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

enum { SAVED = 0, LEFT = 1 };

/* The counters of one function, read once each. They only grow, and calls are counted last: what is read here
 * is never more than has happened. SAVED, LEFT for the next batch, or -1. */
static int save_unsent(struct ct_process *process, struct ct_batch *batch, uint32_t i)
{
    struct ct_function *entry = &directory(process)[i];
#define READ(field) atomic_load_explicit(&entry->field, memory_order_acquire)
    const uint64_t lost = READ(lost_calls), skipped = READ(skipped_calls);
    const bool is_known = process->places && process->places[i] > 0;
    if ((lost | skipped) == 0 && !is_known)
        return 0;
    struct ct_process_function *function = ct_process_function(process, batch, i);
    /* Of several that are counted as one, what was saved is not known: each is saved again. */
    const bool is_own = function->entry == i && function->function_id != 0;
    if (is_own && lost == function->lost && skipped == function->skipped)
        return 0;
    if ((is_own && (lost < function->lost || skipped < function->skipped)) || lost > CT_UNSENT_CALLS_MAX ||
        skipped > CT_UNSENT_CALLS_MAX) {
        process->broken = "it has lost or skipped fewer calls than before, or more than there can be";
        return 0;
    }
    if ((lost | skipped) == 0)
        return SAVED;
    if (!ct_user_may_write(process->user))
        return LEFT;
    const struct ct_unsent_facts facts = {
        .lost = lost,
        .lost_ns = at_most(ct_timeline_span_ns(batch->timeline, READ(lost_ticks)), CT_UNSENT_SUM_MAX),
        .lost_bytes = at_most(READ(lost_bytes), CT_UNSENT_SUM_MAX),
        .skipped = skipped,
        .skipped_ns = at_most(ct_timeline_span_ns(batch->timeline, READ(skipped_ticks)), CT_UNSENT_SUM_MAX),
        .skipped_bytes = at_most(READ(skipped_bytes), CT_UNSENT_SUM_MAX),
    };
#undef READ
    if (ct_store_save_unsent(batch->store, process->segment_id, i, function->function_id, &facts) != 0)
        return -1;
    if (is_own) {
        function->lost = lost;
        function->skipped = skipped;
    }
    return 0;
}

/* The hook says that some counter moved, by one word for all, before it counts the next one there. One that
 * has ended may have been killed between the two. */
static int save_all_unsent(struct ct_process *process, struct ct_batch *batch)
{
    _Atomic uint32_t *const moved = &process->shared->unsent;
    if (!process->scans) {
        /* Pairs with ct_segment_note_unsent(): whoever counts from here on says so again. */
        const bool is_due = atomic_load_explicit(moved, memory_order_relaxed) &&
                            atomic_exchange_explicit(moved, 0, memory_order_seq_cst);
        if (!is_due && (!process->final || process->scanned_last))
            return 0;
        process->scans = true;
        process->scanned_last = process->final;
        process->scan_at = 0;
    }
    const uint32_t until =
        process->scan_at + ct_user_may_scan(process->user, process->published - process->scan_at);
    int done = SAVED;
    for (; process->scan_at < until && !process->broken; process->scan_at++) {
        done = save_unsent(process, batch, process->scan_at);
        if (done != SAVED)
            break;
    }
    if (done == -1)
        return -1;
    process->scans = process->scan_at < process->published && !process->broken;
    process->unfinished |= process->scans;
    return 0;
}

int ct_process_save_functions(struct ct_process *process, struct ct_batch *batch)
{
    return save_totals(process, batch) != 0 ? -1 : save_all_unsent(process, batch);
}

/* What was saved of their counters in this batch is not told from what was before: all are saved again. */
void ct_process_revert_functions(struct ct_process *process)
{
    for (uint32_t i = 0; i < process->function_count; i++) {
        struct ct_process_function *function = &process->functions[i];
        function->function_id = 0;
        function->total = 0;
        function->lost = function->skipped = 0;
    }
    process->total_count = 0;
    process->scans = true;
    process->scan_at = 0;
}

void ct_process_forget_functions(struct ct_process *process)
{
    free(process->places);
    free(process->functions);
    free(process->totals);
    process->places = NULL;
    process->functions = NULL;
    process->totals = NULL;
    process->function_count = process->function_room = process->total_count = process->total_room = 0;
}
