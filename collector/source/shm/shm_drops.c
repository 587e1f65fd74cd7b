#include "shm_drops.h"

#include "shm_functions.h"
#include "shm_lane.h"
#include "test_point.h"

#include <stdlib.h>

enum { SAVED = 0, LEFT = 1 };
/* Reading a lane counts towards the user's limit as much as reading this many directory entries. */
enum { LANE_SCANS = CT_LANE_DROPS / 8 };

struct sum {
    uint64_t calls, ticks, bytes;
};
/* Counts the calls to one function that were not sent. */
struct drops {
    struct sum lost, skipped;
};

/* Saturates, so that invalid counters cannot make a sum wrap around. */
static uint64_t add_up(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t read_word(_Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

/* ---- reading ---- */

/* Returns how many of a lane's calls, to any function, were not sent. The hook updates these counters after
 * the function's own counter. */
static uint64_t read_drops(struct ct_lane *lane)
{
    uint64_t calls = read_word(&lane->skipped);
    for (int cause = 0; cause < CT_LANE_LOSS_COUNT; cause++)
        calls += read_word(&lane->loss[cause].calls);
    return calls;
}

/* Returns whether any lane has counted more calls since the last check. */
static bool note_moves(struct ct_shm_process *process)
{
    bool moved = false;
    for (uint32_t i = 0; i < process->lane_count; i++) {
        struct ct_lane_source *lane = process->lanes[i];
        const uint64_t calls = read_drops(lane->shared);
        moved |= calls != lane->drops;
        lane->drops = calls;
    }
    return moved;
}

/* Returns whether a lane's counters must be read. A lane that has never counted a call is skipped until the
 * process ends. The lanes of an ended process are always read, because the process may have been killed while
 * counting. */
static bool is_read(const struct ct_shm_process *process, const struct ct_lane_source *lane)
{
    return lane->drops > 0 || process->final;
}

/* Adds a lane's counters. Reads each counter once, and `calls` first (see struct ct_drop_count). */
static void add_lane(struct ct_lane *lane, struct drops *drops, uint32_t functions)
{
    for (uint32_t i = 0; i < CT_LANE_DROPS; i++) {
        struct ct_drop_count *counters = &lane->drops[i];
        const uint64_t calls = read_word(&counters->calls);
        const uint32_t key = atomic_load_explicit(&counters->key, memory_order_relaxed);
        const uint32_t function = key >> 2, kind = key & 3;
        if (calls == 0 || function >= functions || (kind != CT_DROP_LOST && kind != CT_DROP_SKIPPED))
            continue;
        struct sum *sum = kind == CT_DROP_LOST ? &drops[function].lost : &drops[function].skipped;
        sum->calls = add_up(sum->calls, calls);
        sum->ticks = add_up(sum->ticks, read_word(&counters->ticks));
        sum->bytes = add_up(sum->bytes, read_word(&counters->bytes));
    }
}

static void add_directory(struct ct_shm_process *process, struct drops *drops, uint32_t i)
{
    struct ct_function *entry = &ct_segment_directory(process->shared)[i];
    struct sum *lost = &drops->lost, *skipped = &drops->skipped;
    lost->calls = add_up(lost->calls, read_word(&entry->lost_calls));
    lost->ticks = add_up(lost->ticks, read_word(&entry->lost_ticks));
    lost->bytes = add_up(lost->bytes, read_word(&entry->lost_bytes));
    skipped->calls = add_up(skipped->calls, read_word(&entry->skipped_calls));
    skipped->ticks = add_up(skipped->ticks, read_word(&entry->skipped_ticks));
    skipped->bytes = add_up(skipped->bytes, read_word(&entry->skipped_bytes));
}

/* ---- saving ---- */

static bool is_too_much(uint64_t calls)
{
    return calls > CT_UNSENT_CALLS_MAX;
}

/* Saves the counts of calls to one function that were not sent. Counters only grow, and calls are counted
 * last, so the values read are never too high. Returns SAVED, LEFT for the next batch, or -1. */
static int save(struct ct_shm_process *process, struct ct_ledger *ledger, uint32_t i,
                const struct drops *drops)
{
    const uint64_t lost = drops->lost.calls, skipped = drops->skipped.calls;
    const bool is_known = process->places && process->places[i] > 0;
    if ((lost | skipped) == 0 && !is_known)
        return SAVED;
    struct ct_shm_function *function = ct_shm_find_function(process, ledger, i);
    if (!function)
        return -1;
    /* Entries that are counted together share `function`, which therefore has no saved values for a single
     * entry. These entries are therefore saved at every scan. */
    const bool is_own = function->entry == i && function->callee.function_id != 0;
    if (is_own && lost == function->lost && skipped == function->skipped)
        return SAVED;
    if ((is_own && (lost < function->lost || skipped < function->skipped)) || is_too_much(lost) ||
        is_too_much(skipped)) {
        process->broken = "a function's number of lost or skipped calls has decreased, or is impossibly high";
        return SAVED;
    }
    if ((lost | skipped) == 0)
        return SAVED;
    if (!ct_user_may_write(process->who.user))
        return LEFT;
    const struct ct_unsent_facts facts = {
        .segment_id = process->account.segment_id,
        .function_id = function->callee.function_id,
        .entry = i,
        .lost = lost,
        .lost_ns = ct_shm_at_most(ct_shm_span_ns(process, drops->lost.ticks), CT_UNSENT_SUM_MAX),
        .lost_bytes = ct_shm_at_most(drops->lost.bytes, CT_UNSENT_SUM_MAX),
        .skipped = skipped,
        .skipped_ns = ct_shm_at_most(ct_shm_span_ns(process, drops->skipped.ticks), CT_UNSENT_SUM_MAX),
        .skipped_bytes = ct_shm_at_most(drops->skipped.bytes, CT_UNSENT_SUM_MAX),
    };
    if (ct_ledger_save(ledger, &(struct ct_fact){ CT_FACT_UNSENT, .unsent = facts }) != 0)
        return -1;
    if (is_own) {
        function->lost = lost;
        function->skipped = skipped;
    }
    return SAVED;
}

/* Saves the entries from scan_at up to `until`. */
static int save_until(struct ct_shm_process *process, struct ct_ledger *ledger, uint32_t until)
{
    struct drops *drops = calloc(process->published, sizeof(*drops));
    if (!drops) {
        ct_store_short_of_memory(ledger->store);
        return -1;
    }
    for (uint32_t i = 0; i < process->lane_count; i++) {
        if (is_read(process, process->lanes[i]))
            add_lane(process->lanes[i]->shared, drops, process->published);
    }
    CT_TEST_POINT("drops.lanes_read");
    int done = SAVED;
    for (; process->scan_at < until && !process->broken; process->scan_at++) {
        add_directory(process, &drops[process->scan_at], process->scan_at);
        done = save(process, ledger, process->scan_at, &drops[process->scan_at]);
        if (done != SAVED)
            break;
    }
    free(drops);
    return done;
}

/* Returns whether any counter has changed since the last scan began. After counting a call in the directory,
 * the hook sets a word that is shared by all entries. Since the process may have been killed between these
 * two steps, an ended process is scanned once more. */
static bool is_due(struct ct_shm_process *process)
{
    _Atomic uint32_t *const moved = &process->shared->has_drops;
    const bool lane_moved = note_moves(process);
    /* Pairs with ct_segment_note_drop(). If the hook counts a call after this exchange, it sets the word
     * again. */
    const bool directory_moved = atomic_load_explicit(moved, memory_order_relaxed) &&
                                 atomic_exchange_explicit(moved, 0, memory_order_seq_cst);
    return lane_moved || directory_moved || (process->final && !process->scanned_last);
}

int ct_shm_save_drops(struct ct_shm_process *process, struct ct_ledger *ledger)
{
    if (!process->scans) {
        if (!is_due(process))
            return 0;
        process->scans = true;
        process->scanned_last = process->final;
        process->scan_at = 0;
    }
    /* Read the directory after the counters, so that it includes functions that were first called since the
     * batch began. */
    ct_shm_read_directory(process);
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < process->lane_count; i++)
        lanes += is_read(process, process->lanes[i]) ? LANE_SCANS : 0;
    uint32_t until = process->scan_at;
    if (ct_user_may_scan(process->who.user, lanes) == lanes)
        until += ct_user_may_scan(process->who.user, process->published - process->scan_at);
    if (until > process->scan_at && !process->broken && save_until(process, ledger, until) == -1)
        return -1;
    process->scans = process->scan_at < process->published && !process->broken;
    process->unfinished |= process->scans;
    return 0;
}
