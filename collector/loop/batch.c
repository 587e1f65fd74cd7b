#include "batch.h"

#include "checkpoint.h"
#include "clock.h"
#include "expire.h"
#include "log.h"
#include "page_loader.h"
#include "statements.h"
#include "stored_calls.h"
#include "test_point.h"
#include "trace_files.h"

#include <stdio.h>
#include <string.h>

enum {
    ROWS_MAX = 250000,   /* per batch, about a tenth of a second */
    EXPIRE_ROWS = 20000, /* removed after a batch, in about a hundredth of a second; more if many are
                          * stored */
    ROW_BYTES = 21,      /* approximate size of a call with its details */
    PIECE_ROWS = 4096,   /* taken between two checks of whether the previous commit is done */
};
/* The next batch is made during a commit only if at least CT_BESIDE_ROWS_MIN rows are being committed. In
 * addition, rows must be left over, or a ring must have been at least CT_BESIDE_FILL_MIN thousandths full.
 * The daemons in tests/faults use lower values. */
#ifndef CT_BESIDE_ROWS_MIN
#define CT_BESIDE_ROWS_MIN 10000
#define CT_BESIDE_FILL_MIN CT_FILL_WANTED
#endif
/* With --keep, at least one batch per interval is committed before the next batch begins, so that old rows
 * can be removed in between. */
#define ALONE_INTERVAL_NS UINT64_C(100000000)
#define LOG_BYTES_MAX     (UINT64_C(256) << 20) /* a log of this size held by a reader starts a new file */
#define PRUNE_INTERVAL_NS UINT64_C(60000000000)
#define GO_ON_RETRY_NS    UINT64_C(10000000000)

#define EACH_SOURCE(s) for (struct ct_source *s = collection->sources; s; s = s->next)

uint64_t ct_bounds_share(const struct ct_bounds *bounds)
{
    return bounds->max_bytes / CT_SERIES_FILES_MAX;
}

/* Returns the maximum size of the current file in bytes, or 0 if unbounded. A file that begins with much data
 * about running processes may grow to twice the size that it begins with, so that it has room for calls. */
static uint64_t file_max(const struct ct_collection *collection)
{
    const uint64_t share = ct_bounds_share(&collection->bounds);
    const uint64_t wanted = 2 * collection->begun_bytes, most = collection->bounds.max_bytes / 2;
    return wanted <= share ? share : wanted < most ? wanted : most;
}

/* Returns the maximum number of rows in a batch, chosen so that a batch fills at most a third of a file. */
static uint64_t rows_max(const struct ct_bounds *bounds)
{
    const uint64_t rows = ct_bounds_share(bounds) / 3 / ROW_BYTES;
    return rows > 0 && rows < ROWS_MAX ? rows : ROWS_MAX;
}

static void revert(struct ct_collection *collection)
{
    EACH_SOURCE(s) s->class->revert(s);
}

/* ---- after a commit ---- */

void ct_batch_describe(struct ct_collection *collection, struct ct_report *report)
{
    struct ct_store *store = collection->ledger.store;
    const char *problem = ct_store_checkpoint_error(store);
    report->late_total = ct_store_late_rows(store);
    report->file = ct_store_file(store);
    report->log_bytes = (uint64_t)ct_store_log_pages(store) * CT_STORE_PAGE_BYTES;
    snprintf(report->by_row, sizeof(report->by_row), "%s", ct_page_loader_why_not(store));
    snprintf(report->checkpoint_error, sizeof(report->checkpoint_error), "%s", problem ? problem : "");
}

/* Makes the sources free the space of all records that the committed batch has taken. */
static void publish(struct ct_collection *collection, struct ct_batch *batch)
{
    CT_TEST_POINT("batch.committed");
    EACH_SOURCE(s) s->class->publish(s, batch);
    collection->rows_unexpired += batch->report->rows;
}

static void tell(const struct ct_report *of_batch, struct ct_report *report)
{
    const struct ct_report before = *report;
    *report = *of_batch;
    ct_report_add(report, &before);
    report->rows_total = before.rows_total + of_batch->rows;
    report->batches_total = before.batches_total + 1;
    report->expired_total = before.expired_total + of_batch->expired;
}

/* Waits for the commit in progress, and publishes its batch. Returns 0, or -1 if the commit failed. */
static int follow(struct ct_collection *collection)
{
    if (!collection->is_committing)
        return 0;
    if (ct_store_commit_wait(collection->ledger.store) != 0)
        return -1;
    collection->is_committing = false;
    struct ct_batch batch = { .ledger = &collection->ledger,
                              .report = &collection->committing,
                              .now_ns = collection->committing.began_ns };
    publish(collection, &batch);
    ct_checkpointer_tend(collection->checkpointer);
    ct_batch_describe(collection, &collection->committing);
    tell(&collection->committing, collection->report);
    return 0;
}

static void on_committed(void *data)
{
    follow(data);
}

static void undo(struct ct_collection *collection, struct ct_report *own)
{
    struct ct_store *store = collection->ledger.store;
    const bool is_committed = ct_store_commit_wait(store) == 0;
    memcpy(own->error, ct_store_error(store), sizeof(own->error));
    /* The batch was committed, so publish it. Otherwise, its calls would be read again. */
    if (is_committed)
        follow(collection);
    ct_ledger_rollback(&collection->ledger);
    collection->is_committing = false;
    revert(collection);
}

/* Removes rows older than --keep, up to twice as many as were stored since the last removal, so that removal
 * keeps up with storing. */
static void expire(struct ct_collection *collection, const struct ct_batch *batch)
{
    struct ct_report *report = batch->report;
    struct ct_expired expired;
    const uint64_t keep_ns = collection->bounds.keep_ns;
    if (keep_ns == 0 || batch->now_ns <= keep_ns)
        return;
    if (ct_store_expire(collection->ledger.store, batch->now_ns, batch->now_ns - keep_ns,
                        EXPIRE_ROWS + 2 * collection->rows_unexpired, &expired) != 0) {
        undo(collection, report);
        return;
    }
    report->expiring = expired.more;
    report->expired = expired.rows;
    collection->rows_unexpired = 0;
}

/* ---- the files of a trace ---- */

static void note_removed(const char *path, int error)
{
    if (error)
        ct_log(CT_LOG_file_stays, "cannot remove %s, so the trace exceeds --max-db or --keep: %s", path,
               strerror(error));
    else
        ct_log(CT_LOG_file_removed, "removed %s, because the trace is limited by --max-db or --keep", path);
}

static void prune(struct ct_collection *collection, uint64_t now_ns)
{
    const struct ct_bounds *bounds = &collection->bounds;
    collection->pruned_ns = now_ns;
    /* Reserve room for the current file, and a share for that file's log and one batch. */
    ct_store_prune(collection->ledger.store,
                   bounds->max_bytes - file_max(collection) - ct_bounds_share(bounds),
                   bounds->keep_ns && now_ns > bounds->keep_ns ? now_ns - bounds->keep_ns : 0, note_removed);
}

/* Returns the reason for continuing the trace in its next file, or NULL if there is none. One reason is a log
 * that grows because a reader holds it; the next file starts with an empty log. After a failure to continue,
 * the next attempt is made after a delay, but a request is followed at once. */
static const char *why_go_on(struct ct_collection *collection, uint64_t now_ns)
{
    const uint64_t share = ct_bounds_share(&collection->bounds);
    const uint64_t log_bytes = (uint64_t)ct_store_log_pages(collection->ledger.store) * CT_STORE_PAGE_BYTES;
    const uint64_t log_max = share && share < LOG_BYTES_MAX ? share : LOG_BYTES_MAX;
    if (collection->next_file)
        return "requested by SIGHUP";
    if (now_ns < collection->go_on_after_ns)
        return NULL;
    if (log_bytes >= log_max && ct_store_log_is_held(collection->ledger.store))
        return "a reader holds the write-ahead log of the previous file";
    return share && ct_store_bytes(collection->ledger.store) >= file_max(collection)
               ? "the previous file has reached its share of --max-db"
               : NULL;
}

void ct_batch_go_on(struct ct_collection *collection, const struct ct_report *report)
{
    const uint64_t now_ns = ct_monotonic_ns();
    collection->next_file = false;
    if (ct_store_go_on(collection->ledger.store) != 0) {
        collection->go_on_after_ns = now_ns + GO_ON_RETRY_NS;
        ct_log(CT_LOG_file_refused, "cannot continue the trace in its next file (%s): %s; it continues in %s",
               report->go_on, ct_store_error(collection->ledger.store),
               ct_store_path(collection->ledger.store));
        return;
    }
    ct_log(CT_LOG_file_begun, "the trace continues in %s: %s", ct_store_path(collection->ledger.store),
           report->go_on);
    collection->begun_bytes = ct_store_bytes(collection->ledger.store);
    revert(collection);
    prune(collection, now_ns);
}

/* Call after a commit. */
static void tend_files(struct ct_collection *collection, const struct ct_batch *batch)
{
    struct ct_report *report = batch->report;
    expire(collection, batch);
    report->go_on = why_go_on(collection, batch->now_ns);
    if (collection->bounds.keep_ns && batch->now_ns - collection->pruned_ns >= PRUNE_INTERVAL_NS)
        prune(collection, batch->now_ns);
}

/* ---- a batch ---- */

/* Takes the calls. As soon as the previous batch is committed, frees the space that its records occupy in the
 * rings. */
static int take_calls(struct ct_collection *collection, struct ct_batch *batch)
{
    uint64_t *rows = &batch->report->rows, wanted, taken;
    do {
        wanted = batch->rows_max - *rows < PIECE_ROWS ? batch->rows_max - *rows : PIECE_ROWS;
        if (ct_ledger_calls(batch->ledger, wanted, &taken) != 0)
            return -1;
        *rows += taken;
        if (ct_store_commit_is_done(batch->ledger->store) && follow(collection) != 0)
            return -1;
    } while (taken == wanted && *rows < batch->rows_max);
    return 0;
}

/* Does everything between beginning and committing a batch. Returns 0 or -1. */
static int fill_batch(struct ct_collection *collection, struct ct_batch *batch)
{
    struct ct_ledger *ledger = batch->ledger;
    struct ct_report *own = batch->report;
    EACH_SOURCE(s)
    {
        if (s->class->begin(s, batch) != 0)
            return -1;
    }
    CT_TEST_POINT("batch.synced");
    EACH_SOURCE(s) s->class->watermark(s, batch);
    ct_merge_begin(&ledger->merge, batch->until_ns);
    EACH_SOURCE(s)
    {
        if (s->class->streams(s, batch) != 0)
            return -1;
    }
    if (take_calls(collection, batch) != 0)
        return -1;
    CT_TEST_POINT("batch.inserted");
    own->more = ledger->merge.count > 0;
    /* All calls that returned earlier than the first remaining call have been taken. */
    own->flushed_ns = batch->until_ns;
    if (own->more)
        own->flushed_ns = ct_merge_due_ns(&ledger->merge) > 0 ? ct_merge_due_ns(&ledger->merge) - 1 : 0;
    if (follow(collection) != 0)
        return -1;
    EACH_SOURCE(s)
    {
        if (s->class->save(s, batch) != 0)
            return -1;
    }
    own->more |= own->held_count > 0;
    return 0;
}

/* Returns whether the file has room for this batch and the next, because the trace can continue in its next
 * file only after both batches. */
static bool has_room(const struct ct_collection *collection, const struct ct_batch *batch)
{
    const uint64_t most = file_max(collection);
    return most == 0 || ct_store_bytes(collection->ledger.store) + 2 * batch->rows_max * ROW_BYTES < most;
}

/* Returns whether the next batch, which is likely to be large as well, may be made while this one is
 * committed. */
static bool may_commit_beside(struct ct_collection *collection, const struct ct_request *request,
                              const struct ct_batch *batch)
{
    const struct ct_report *own = batch->report;
    const bool is_busy = own->rows >= CT_BESIDE_ROWS_MIN && (own->more || own->fill >= CT_BESIDE_FILL_MIN);
    return is_busy && !batch->is_alone && !request->alone && request->flush_ns == 0 &&
           !collection->ledger.recorder && ct_store_may_commit_start(collection->ledger.store) &&
           !why_go_on(collection, batch->now_ns) && has_room(collection, batch) &&
           (collection->bounds.keep_ns == 0 || batch->now_ns - collection->alone_ns < ALONE_INTERVAL_NS);
}

/* Finishes a filled batch. Returns 0 or -1. */
static int end_batch(struct ct_collection *collection, const struct ct_request *request,
                     struct ct_batch *batch)
{
    if (may_commit_beside(collection, request, batch)) {
        collection->is_committing = ct_store_commit_start(batch->ledger->store) == 0;
        return collection->is_committing ? 0 : -1;
    }
    batch->is_alone = true;
    if (ct_ledger_commit(batch->ledger) != 0)
        return -1;
    collection->alone_ns = batch->now_ns;
    publish(collection, batch);
    tend_files(collection, batch);
    return 0;
}

bool ct_batch_make(struct ct_collection *collection, const struct ct_request *request,
                   struct ct_report *report)
{
    struct ct_ledger *ledger = &collection->ledger;
    struct ct_report own = { 0 };
    collection->next_file |= request->next_file;
    collection->report = report;
    ct_store_on_committed(ledger->store, on_committed, collection);
    EACH_SOURCE(s)
    {
        if (s->class->wake)
            s->class->wake(s, request, &own);
    }
    struct ct_batch batch = {
        .ledger = ledger,
        .report = &own,
        .rows_max = rows_max(&collection->bounds),
        .snapshot_open = request->snapshot_open || request->flush_ns,
    };
    /* Take the time after ct_store_begin(), which may wait for another process's lock. */
    const int begun = ct_store_begin(ledger->store);
    batch.now_ns = ct_monotonic_ns();
    batch.until_ns = UINT64_MAX;
    own.began_ns = batch.now_ns;
    CT_TEST_POINT("batch.begun");
    if (begun != 0 || fill_batch(collection, &batch) != 0 || end_batch(collection, request, &batch) != 0) {
        undo(collection, &own);
        own.rows = 0;
        own.flushed_ns = 0;
    }
    EACH_SOURCE(s) s->class->rest(s, &own);
    if (collection->is_committing) {
        collection->committing = own;
        return false;
    }
    ct_checkpointer_tend(collection->checkpointer);
    ct_batch_describe(collection, &own);
    tell(&own, report);
    return true;
}
