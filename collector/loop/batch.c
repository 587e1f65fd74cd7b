#include "batch.h"

#include "shm_lane.h"
#include "log.h"
#include "session_names.h"
#include "test_point.h"
#include "trace_files.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    ROWS_MAX = 250000, /* a batch's: about a tenth of a second */
    META_INTERVAL_NS = 1000000000,
    EXPIRE_ROWS = 20000, /* taken away behind a batch: a hundredth of a second; more where more come */
};
#define LOG_BYTES_MAX     (UINT64_C(256) << 20) /* of a log that a reader holds */
#define PRUNE_INTERVAL_NS UINT64_C(60000000000)
#define GO_ON_RETRY_NS    UINT64_C(10000000000)

#define EACH_PROCESS(p) for (struct ct_process *p = collection->processes; p; p = p->next)

uint64_t ct_bounds_share(const struct ct_bounds *bounds)
{
    return bounds->max_bytes / CT_SERIES_FILES_MAX;
}

/* Where files are small, so are batches: a third of a file at most. */
static uint64_t rows_max(const struct ct_bounds *bounds)
{
    enum { ROW_BYTES = 21 };
    const uint64_t rows = ct_bounds_share(bounds) / 3 / ROW_BYTES;
    return rows > 0 && rows < ROWS_MAX ? rows : ROWS_MAX;
}

static int write_meta(struct ct_collection *collection, const struct ct_batch *batch)
{
    if (batch->now_ns - collection->meta_written_ns < META_INTERVAL_NS)
        return 0;
    collection->meta_written_ns = batch->now_ns;
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    const int64_t now = (int64_t)ct_monotonic_ns();
    return ct_store_set_meta(collection->store, "realtime_offset_ns",
                             (int64_t)real.tv_sec * 1000000000 + real.tv_nsec - now);
}

/* What is in the collection, or has a segment that will be, is at its end when that has been read. */
static bool goes_on(const struct ct_running *running, const void *data)
{
    char path[CT_NAME_BYTES];
    const struct ct_collection *collection = data;
    EACH_PROCESS(p)
    {
        if (p->process_id == running->process_id)
            return true;
    }
    if (running->segment &&
        (size_t)snprintf(path, sizeof(path), "%s/%s", collection->dir, running->segment) < sizeof(path) &&
        access(path, F_OK) == 0)
        return true;
    return ct_process_alive(running, NULL);
}

static int end_orphans(struct ct_collection *collection, const struct ct_batch *batch)
{
    uint64_t running;
    if (ct_store_end_orphans(collection->store, batch->now_ns, goes_on, collection, &running) != 0)
        return -1;
    collection->orphans = running > 0;
    return 0;
}

/* Counts anew what each user spends of the batch, and lacks. */
static void begin_accounts(struct ct_collection *collection)
{
    EACH_PROCESS(p)
    {
        struct ct_user *user = p->user;
        if (!user)
            continue;
        user->waiting = user->spent = 0;
        user->starts = user->writes = user->scans = 0;
        user->is_held = false;
        user->is_short = (struct ct_shortage){ 0 };
    }
}

/* A user's share of a batch is what one may cost, in rows of plain calls, divided by the users who have any
 * waiting: what is beyond stays for the next one, and comes late if others' calls were stored meanwhile. So a
 * user who publishes without end, claims times long past, or makes up names, delays himself. */
static void share_out(struct ct_collection *collection)
{
    uint64_t users = 0;
    EACH_PROCESS(p)
    {
        const uint64_t waiting = p->user ? ct_process_slots(p) : 0;
        users += waiting > 0 && p->user->waiting == 0;
        if (p->user)
            p->user->waiting += waiting;
    }
    const uint64_t share = rows_max(&collection->bounds) / (users > 0 ? users : 1);
    EACH_PROCESS(p)
    {
        if (!p->user)
            continue;
        p->user->allowance = share;
        if (users < 2 || p->user->waiting <= share)
            continue;
        ct_process_hold_back(p, share, p->user->waiting);
        p->user->is_held = true;
    }
}

static void add_shortage(struct ct_shortage *to, const struct ct_process *p)
{
    to->lanes += p->lanes_wait;
    to->functions += p->merged;
}

/* Who is held, and who lacks what. */
static void close_accounts(struct ct_collection *collection, struct ct_report *report)
{
    EACH_PROCESS(p)
    {
        add_shortage(&report->is_short, p);
        if (!p->user)
            continue;
        add_shortage(&p->user->is_short, p);
        if (p->user->is_held)
            ct_report_hold(report, p->user->uid);
    }
    EACH_PROCESS(p)
    {
        struct ct_user *user = p->user;
        if (!user || (user->is_short.lanes | user->is_short.functions) == 0)
            continue;
        if (report->short_count < CT_HELD_MAX) {
            report->short_users[report->short_count].uid = user->uid;
            report->short_users[report->short_count].is_short = user->is_short;
        }
        report->short_count++;
        user->is_short = (struct ct_shortage){ 0 }; /* once for each */
    }
}

void ct_report_hold(struct ct_report *report, uint32_t uid)
{
    if (ct_report_holds(report, uid))
        return;
    if (report->held_count < CT_HELD_MAX)
        report->held[report->held_count] = uid;
    report->held_count++;
}

bool ct_report_holds(const struct ct_report *report, uint32_t uid)
{
    for (uint32_t i = 0; i < report->held_count && i < CT_HELD_MAX; i++) {
        if (report->held[i] == uid)
            return true;
    }
    return report->held_count > CT_HELD_MAX;
}

/* By the later one alone, all calls of a user whom the earlier one held may be stored; he hears so with the
 * next. */
void ct_report_add(struct ct_report *report, const struct ct_report *earlier)
{
    report->rows += earlier->rows;
    if (earlier->flushed_ns > report->flushed_ns)
        report->flushed_ns = earlier->flushed_ns;
    for (uint32_t i = 0; i < earlier->held_count && i < CT_HELD_MAX; i++)
        ct_report_hold(report, earlier->held[i]);
    if (earlier->held_count > CT_HELD_MAX)
        report->held_count = earlier->held_count;
    struct ct_process **end = &report->gone;
    while (*end)
        end = &(*end)->next;
    *end = earlier->gone;
}

/* All between begin and commit; 0 or -1. */
static int fill_batch(struct ct_collection *collection, struct ct_batch *batch, struct ct_report *report)
{
    begin_accounts(collection);
    EACH_PROCESS(p)
    {
        if (ct_process_sync(p, batch) != 0)
            return -1;
    }
    CT_TEST_POINT("batch.synced");
    EACH_PROCESS(p) ct_process_watermark(p, batch);
    share_out(collection);
    ct_merge_begin(&collection->merge, batch->until_ns);
    EACH_PROCESS(p)
    {
        if (ct_process_add(p, batch, &collection->merge) != 0)
            return -1;
    }
    if (collection->merge.count > 0 && ct_store_calls(collection->store, &collection->merge,
                                                      rows_max(&collection->bounds), &report->rows) != 0)
        return -1;
    CT_TEST_POINT("batch.inserted");
    report->more = collection->merge.count > 0;
    /* What returned before the earliest call that was left is stored. */
    report->flushed_ns = batch->until_ns;
    if (collection->merge.count > 0)
        report->flushed_ns =
            ct_merge_peek(&collection->merge) > 0 ? ct_merge_peek(&collection->merge) - 1 : 0;
    /* Nobody counts the segments of the system's session: of those made since the last look nothing is known.
     */
    if (collection->control->system && collection->looked_ns < report->flushed_ns)
        report->flushed_ns = collection->looked_ns;
    EACH_PROCESS(p)
    {
        if (ct_process_save(p, batch) != 0)
            return -1;
        if (p->final && !ct_process_has_backlog(p) && ct_process_end(p, batch) != 0)
            return -1;
    }
    close_accounts(collection, report);
    report->more |= report->held_count > 0;
    CT_TEST_POINT("batch.saved");
    if (batch->snapshot_open && collection->orphans && end_orphans(collection, batch) != 0)
        return -1;
    return report->rows > 0 ? write_meta(collection, batch) : 0;
}

/* Calls of segments that are not yet read may be as old as the last moment at which all were known: a hook
 * counts its segment before its first call, and makes it before that. Whoever counts without end holds up
 * nobody: the last look found all that there were.
 *
 * In the system's session no hook can count: a counter that users can write is one by which each can hold up
 * the rows of all. There the event of a new file brings its segment in within a batch or two; a call that
 * returned before the watermark of a batch that did not know its segment comes late, is marked and counted.
 */
static uint64_t watermark(struct ct_collection *collection, uint64_t now_ns)
{
    const uint32_t segments = atomic_load_explicit(&collection->control->segments, memory_order_acquire);
    if (segments == collection->segments_known)
        collection->all_known_ns = now_ns;
    else if (collection->looked_ns > collection->all_known_ns)
        collection->all_known_ns = collection->looked_ns;
    return collection->all_known_ns > CT_PUBLISH_SLACK_NS ? collection->all_known_ns - CT_PUBLISH_SLACK_NS
                                                          : 0;
}

static void give_back(struct ct_collection *collection, const struct ct_process *p)
{
    struct ct_holding *his = p->user ? &p->user->worker_has : NULL;
    ct_share_give(&collection->held, his, CT_SHARED_LANES, p->lane_count);
    if (p->function_count > 0)
        ct_share_give(&collection->held, his, CT_SHARED_FUNCTIONS, p->function_count - 1);
}

/* Takes the processes out that are at their end, or broke a rule. */
static void sort_out(struct ct_collection *collection, struct ct_report *report)
{
    for (struct ct_process **link = &collection->processes; *link;) {
        struct ct_process *p = *link;
        if (p->broken) {
            ct_process_detach(p);
            collection->orphans = true; /* nobody follows it now: its end is looked for */
        }
        if (p->broken || (p->final && !ct_process_has_backlog(p))) {
            give_back(collection, p);
            *link = p->next;
            p->next = report->gone;
            report->gone = p;
        } else {
            link = &p->next;
        }
    }
}

/* What memory says of rows that are gone again goes too. */
static void undo(struct ct_collection *collection, struct ct_report *report)
{
    memcpy(report->error, ct_store_error(collection->store), sizeof(report->error));
    ct_store_rollback(collection->store);
    EACH_PROCESS(p) ct_process_revert(p);
    collection->orphans = true; /* whose end may have been in it */
    collection->meta_written_ns = 0;
}

/* A piece of what is older than what is kept. A full batch is followed by a piece of twice its size, so that
 * rows go as fast as they come. */
static void expire(struct ct_collection *collection, const struct ct_batch *batch, struct ct_report *report)
{
    struct ct_expired expired;
    const uint64_t keep_ns = collection->bounds.keep_ns;
    if (keep_ns == 0 || batch->now_ns <= keep_ns)
        return;
    if (ct_store_expire(collection->store, batch->now_ns, batch->now_ns - keep_ns,
                        EXPIRE_ROWS + 2 * report->rows, &expired) != 0) {
        undo(collection, report);
        return;
    }
    if (expired.renumbered)
        EACH_PROCESS(p) ct_process_forget_sites(p);
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
    /* What is left has room for the file in use to grow to its share, for its log, and for a batch. */
    ct_store_prune(collection->store, bounds->max_bytes - 2 * ct_bounds_share(bounds),
                   bounds->keep_ns && now_ns > bounds->keep_ns ? now_ns - bounds->keep_ns : 0, note_removed);
}

/* Why the trace is to go on in its next file. A log that a reader holds grows until the reader ends; that of
 * the next file begins anew. */
static const char *why_go_on(struct ct_collection *collection, uint64_t now_ns)
{
    const uint64_t share = ct_bounds_share(&collection->bounds);
    const uint64_t log_bytes = (uint64_t)ct_store_log_pages(collection->store) * CT_STORE_PAGE_BYTES;
    const uint64_t log_max = share && share < LOG_BYTES_MAX ? share : LOG_BYTES_MAX;
    if (now_ns < collection->go_on_after_ns)
        return NULL;
    if (collection->next_file)
        return "asked for";
    if (log_bytes >= log_max && ct_store_log_is_held(collection->store))
        return "a reader holds the write-ahead log of the last one";
    return share && ct_store_bytes(collection->store) >= share ? "--max-db" : NULL;
}

void ct_batch_go_on(struct ct_collection *collection, const struct ct_report *report)
{
    const uint64_t now_ns = ct_monotonic_ns();
    collection->next_file = false;
    if (ct_store_go_on(collection->store) != 0) {
        collection->go_on_after_ns = now_ns + GO_ON_RETRY_NS;
        ct_log(CT_LOG_file_refused, "the trace cannot go on in its next file (%s): %s; it goes on in %s",
               report->go_on, ct_store_error(collection->store), ct_store_path(collection->store));
        return;
    }
    ct_log(CT_LOG_file_begun, "the trace goes on in %s: %s", ct_store_path(collection->store), report->go_on);
    EACH_PROCESS(p) ct_process_revert(p);
    prune(collection, now_ns);
}

void ct_batch_make(struct ct_collection *collection, const struct ct_request *request,
                   struct ct_report *report)
{
    report->looked_ns = collection->looked_ns;
    if (!collection->quiet)
        atomic_store_explicit(&collection->control->sleeping, 0, memory_order_relaxed);
    collection->next_file |= request->next_file;
    /* Those too that were found since it was asked for. */
    collection->detaching |= request->detach;
    EACH_PROCESS(p)
    {
        if (collection->detaching || request->let_go || atomic_load(&p->unnamed))
            ct_process_detach(p);
    }
    if (request->flush_ns)
        /* The watermark lies a slack in the past, and has to reach the moment that was asked for. */
        nanosleep(&(struct timespec){ .tv_nsec = 2 * CT_PUBLISH_SLACK_NS }, NULL);
    ct_timeline_anchor(&collection->timeline);
    struct ct_batch batch = {
        .store = collection->store,
        .timeline = &collection->timeline,
        .held = &collection->held,
        .snapshot_open = request->snapshot_open || request->flush_ns,
    };
    /* Beginning may wait for somebody else's lock; time is taken behind it. */
    const int begun = ct_store_begin(collection->store);
    batch.now_ns = ct_monotonic_ns();
    batch.until_ns = batch.silent_ns = watermark(collection, batch.now_ns);

    CT_TEST_POINT("batch.begun");
    if (begun != 0 || fill_batch(collection, &batch, report) != 0 ||
        ct_store_commit(collection->store) != 0) {
        undo(collection, report);
        report->rows = 0;
        report->flushed_ns = 0;
        collection->quiet = false;
    } else {
        collection->quiet = report->rows == 0;
        const uint32_t selections =
            atomic_load_explicit(&collection->control->selections, memory_order_acquire);
        CT_TEST_POINT("batch.committed");
        EACH_PROCESS(p)
        {
            const uint32_t fill = ct_process_publish(p, report->rows == 0, selections);
            report->fill = fill > report->fill ? fill : report->fill;
        }
        CT_TEST_POINT("batch.published");
        sort_out(collection, report);
        expire(collection, &batch, report);
        report->go_on = why_go_on(collection, batch.now_ns);
        if (collection->bounds.keep_ns && batch.now_ns - collection->pruned_ns >= PRUNE_INTERVAL_NS)
            prune(collection, batch.now_ns);
    }
    /* From here on a lane that passes its mark rings; what it passed before is seen as backlog. */
    /* Odd, and so never 0; begun anywhere, since a process may remember the numbers of an earlier daemon. */
    collection->sleeps = (collection->sleeps ? collection->sleeps : (uint32_t)batch.now_ns) + 2;
    atomic_store_explicit(&collection->control->sleeping,
                          collection->control->system ? collection->sleeps | 1 : 1, memory_order_seq_cst);
    report->processes = report->lanes = 0;
    EACH_PROCESS(p)
    {
        report->backlog |= ct_process_has_backlog(p);
        report->waiting += report->error[0] ? ct_process_waiting(p) : 0;
        report->processes++;
        report->lanes += p->lane_count;
    }
    report->rows_total += report->rows;
    report->late_total = ct_store_late_rows(collection->store);
    report->batches_total++;
}
