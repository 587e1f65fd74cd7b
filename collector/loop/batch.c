#include "batch.h"

#include "clock.h"
#include "expire.h"
#include "log.h"
#include "stored_calls.h"
#include "test_point.h"
#include "trace_files.h"

#include <string.h>

enum {
    ROWS_MAX = 250000,   /* a batch's: about a tenth of a second */
    EXPIRE_ROWS = 20000, /* taken away behind a batch: a hundredth of a second; more where more come */
};
#define LOG_BYTES_MAX     (UINT64_C(256) << 20) /* beyond it a log that a reader holds begins a new file */
#define PRUNE_INTERVAL_NS UINT64_C(60000000000)
#define GO_ON_RETRY_NS    UINT64_C(10000000000)

#define EACH_SOURCE(s) for (struct ct_source *s = collection->sources; s; s = s->next)

uint64_t ct_bounds_share(const struct ct_bounds *bounds)
{
    return bounds->max_bytes / CT_SERIES_FILES_MAX;
}

/* Bounds a batch. Where files are small, it is a third of a file at most. */
static uint64_t rows_max(const struct ct_bounds *bounds)
{
    enum { ROW_BYTES = 21 };
    const uint64_t rows = ct_bounds_share(bounds) / 3 / ROW_BYTES;
    return rows > 0 && rows < ROWS_MAX ? rows : ROWS_MAX;
}

/* All between begin and commit; 0 or -1. */
static int fill_batch(struct ct_collection *collection, struct ct_batch *batch)
{
    struct ct_ledger *ledger = batch->ledger;
    struct ct_report *report = batch->report;
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
    if (ct_ledger_calls(ledger, batch->rows_max, &report->rows) != 0)
        return -1;
    CT_TEST_POINT("batch.inserted");
    report->more = ledger->merge.count > 0;
    /* All that returned before the earliest call that was left is stored. */
    report->flushed_ns = batch->until_ns;
    if (report->more)
        report->flushed_ns = ct_merge_due_ns(&ledger->merge) > 0 ? ct_merge_due_ns(&ledger->merge) - 1 : 0;
    EACH_SOURCE(s)
    {
        if (s->class->save(s, batch) != 0)
            return -1;
    }
    report->more |= report->held_count > 0;
    return 0;
}

static void revert(struct ct_collection *collection)
{
    EACH_SOURCE(s) s->class->revert(s);
}

static void undo(struct ct_collection *collection, struct ct_report *report)
{
    memcpy(report->error, ct_store_error(collection->ledger.store), sizeof(report->error));
    ct_ledger_rollback(&collection->ledger);
    revert(collection);
}

/* A piece of what is older than what is kept. A full batch is followed by a piece of twice its size, so that
 * rows go as fast as they come. */
static void expire(struct ct_collection *collection, const struct ct_batch *batch, struct ct_report *report)
{
    struct ct_expired expired;
    const uint64_t keep_ns = collection->bounds.keep_ns;
    if (keep_ns == 0 || batch->now_ns <= keep_ns)
        return;
    if (ct_store_expire(collection->ledger.store, batch->now_ns, batch->now_ns - keep_ns,
                        EXPIRE_ROWS + 2 * report->rows, &expired) != 0) {
        undo(collection, report);
        return;
    }
    report->expiring = expired.more;
    report->expired_total += expired.rows;
}

/* ---- the files of a trace ---- */

static void note_removed(const char *path)
{
    ct_log(CT_LOG_file_removed, "%s is removed: the trace is bounded by --max-db or --keep", path);
}

static void prune(struct ct_collection *collection, uint64_t now_ns)
{
    const struct ct_bounds *bounds = &collection->bounds;
    collection->pruned_ns = now_ns;
    /* Keeps two shares free: the file in use grows to its share, and its log and a batch need room. */
    ct_store_prune(collection->ledger.store, bounds->max_bytes - 2 * ct_bounds_share(bounds),
                   bounds->keep_ns && now_ns > bounds->keep_ns ? now_ns - bounds->keep_ns : 0, note_removed);
}

/* Returns why the trace is to go on in its next file, or NULL. A log that a reader holds grows until the
 * reader ends; that of the next file begins anew. */
static const char *why_go_on(struct ct_collection *collection, uint64_t now_ns)
{
    const uint64_t share = ct_bounds_share(&collection->bounds);
    const uint64_t log_bytes = (uint64_t)ct_store_log_pages(collection->ledger.store) * CT_STORE_PAGE_BYTES;
    const uint64_t log_max = share && share < LOG_BYTES_MAX ? share : LOG_BYTES_MAX;
    if (now_ns < collection->go_on_after_ns)
        return NULL;
    if (collection->next_file)
        return "asked for";
    if (log_bytes >= log_max && ct_store_log_is_held(collection->ledger.store))
        return "a reader holds the write-ahead log of the last one";
    return share && ct_store_bytes(collection->ledger.store) >= share ? "--max-db" : NULL;
}

void ct_batch_go_on(struct ct_collection *collection, const struct ct_report *report)
{
    const uint64_t now_ns = ct_monotonic_ns();
    collection->next_file = false;
    if (ct_store_go_on(collection->ledger.store) != 0) {
        collection->go_on_after_ns = now_ns + GO_ON_RETRY_NS;
        ct_log(CT_LOG_file_refused, "the trace cannot go on in its next file (%s): %s; it goes on in %s",
               report->go_on, ct_store_error(collection->ledger.store),
               ct_store_path(collection->ledger.store));
        return;
    }
    ct_log(CT_LOG_file_begun, "the trace goes on in %s: %s", ct_store_path(collection->ledger.store),
           report->go_on);
    revert(collection);
    prune(collection, now_ns);
}

/* Behind a commit. */
static void tend_files(struct ct_collection *collection, const struct ct_batch *batch)
{
    struct ct_report *report = batch->report;
    expire(collection, batch, report);
    report->go_on = why_go_on(collection, batch->now_ns);
    if (collection->bounds.keep_ns && batch->now_ns - collection->pruned_ns >= PRUNE_INTERVAL_NS)
        prune(collection, batch->now_ns);
}

void ct_batch_make(struct ct_collection *collection, const struct ct_request *request,
                   struct ct_report *report)
{
    struct ct_ledger *ledger = &collection->ledger;
    collection->next_file |= request->next_file;
    EACH_SOURCE(s)
    {
        if (s->class->wake)
            s->class->wake(s, request, report);
    }
    struct ct_batch batch = {
        .ledger = ledger,
        .report = report,
        .rows_max = rows_max(&collection->bounds),
        .snapshot_open = request->snapshot_open || request->flush_ns,
    };
    /* Beginning may wait for somebody else's lock; time is taken behind it. */
    const int begun = ct_ledger_begin(ledger);
    batch.now_ns = ct_monotonic_ns();
    batch.until_ns = UINT64_MAX;
    CT_TEST_POINT("batch.begun");
    if (begun != 0 || fill_batch(collection, &batch) != 0 || ct_ledger_commit(ledger) != 0) {
        undo(collection, report);
        report->rows = 0;
        report->flushed_ns = 0;
    } else {
        CT_TEST_POINT("batch.committed");
        EACH_SOURCE(s) s->class->publish(s, &batch);
        tend_files(collection, &batch);
    }
    report->processes = report->lanes = 0;
    EACH_SOURCE(s) s->class->rest(s, report);
    report->rows_total += report->rows;
    report->late_total = ct_store_late_rows(ledger->store);
    report->batches_total++;
}
