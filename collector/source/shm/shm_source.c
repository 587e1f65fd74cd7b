#include "shm_source.h"

#include "shm_drain.h"
#include "shm_segment.h"
#include "stored_calls.h"
#include "test_point.h"

#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
    META_INTERVAL_NS = 1000000000,
    GIVE_BACK_BYTES = 256 << 20, /* per batch, takes about ten milliseconds */
};

#define EACH_PROCESS(p) for (struct ct_shm_process *p = shm->processes; p; p = p->next)

static struct ct_shm *shm_of(struct ct_source *source)
{
    return (struct ct_shm *)source;
}

/* ---- arrival and removal of processes ---- */

void ct_shm_adopt(struct ct_shm *shm, struct ct_shm_process *process)
{
    pthread_mutex_lock(&shm->handed.mutex);
    process->next = shm->handed.incoming;
    shm->handed.incoming = process;
    pthread_mutex_unlock(&shm->handed.mutex);
}

void ct_shm_adopted(struct ct_shm *shm, uint32_t segments, uint64_t looked_ns)
{
    pthread_mutex_lock(&shm->handed.mutex);
    shm->handed.segments = segments;
    shm->handed.looked_ns = looked_ns;
    pthread_mutex_unlock(&shm->handed.mutex);
}

struct ct_shm_process *ct_shm_take_gone(struct ct_shm *shm)
{
    pthread_mutex_lock(&shm->handed.mutex);
    struct ct_shm_process *gone = shm->handed.gone;
    shm->handed.gone = NULL;
    pthread_mutex_unlock(&shm->handed.mutex);
    return gone;
}

static void take_incoming(struct ct_shm *shm)
{
    pthread_mutex_lock(&shm->handed.mutex);
    struct ct_shm_process *incoming = shm->handed.incoming;
    shm->handed.incoming = NULL;
    shm->segments_known = shm->handed.segments;
    shm->looked_ns = shm->handed.looked_ns;
    pthread_mutex_unlock(&shm->handed.mutex);
    for (struct ct_shm_process *next; incoming; incoming = next) {
        next = incoming->next;
        incoming->shm = shm;
        incoming->next = shm->processes;
        shm->processes = incoming;
    }
}

static void give_back(struct ct_shm *shm, const struct ct_shm_process *p)
{
    ct_share_give(&shm->held, ct_shm_holding(p), CT_SHARED_LANES, p->lane_count);
    if (p->function_count > 0)
        ct_share_give(&shm->held, ct_shm_holding(p), CT_SHARED_FUNCTIONS, p->function_count - 1);
}

/* Removes processes that have ended or broken a rule. */
static void sort_out(struct ct_shm *shm)
{
    for (struct ct_shm_process **link = &shm->processes; *link;) {
        struct ct_shm_process *p = *link;
        if (p->broken) {
            ct_shm_detach(p);
            shm->orphans = true; /* no longer followed, so check whether it has exited */
        }
        if (!p->broken && !(p->final && !ct_shm_has_backlog(p))) {
            link = &p->next;
            continue;
        }
        give_back(shm, p);
        *link = p->next;
        pthread_mutex_lock(&shm->handed.mutex);
        p->next = shm->handed.gone;
        shm->handed.gone = p;
        pthread_mutex_unlock(&shm->handed.mutex);
    }
}

bool ct_shm_runs_on(const struct ct_shm_process *process)
{
    struct pollfd ended = { .fd = process->who.pidfd, .events = POLLIN };
    if (process->who.pidfd < 0 ? atomic_load(&process->who.dead) : poll(&ended, 1, 0) != 0)
        return false;
    return !ct_shm_is_left(process) && !ct_shm_is_over(process);
}

/* Returns the state of a process that is not in the list, but may have a segment for this daemon or for
 * another session's daemon. */
static enum ct_going going_elsewhere(const struct ct_shm *shm, const struct ct_running *running)
{
    char path[CT_NAME_BYTES];
    if (running->segment &&
        (size_t)snprintf(path, sizeof(path), "%s/%s", shm->dir, running->segment) < sizeof(path) &&
        access(path, F_OK) == 0)
        return CT_GOING_ON;
    return ct_process_lives(running->pid, running->start_ticks) ? CT_GOING_UNCOLLECTED : CT_GOING_ENDED;
}

enum ct_going ct_shm_going_at_end(const struct ct_running *running, const void *data)
{
    const struct ct_shm *shm = data;
    bool is_here = false; /* maybe only with a segment that its hook has left */
    EACH_PROCESS(p)
    {
        if (p->account.process_id != running->process_id)
            continue;
        if (ct_shm_runs_on(p))
            return CT_GOING_UNCOLLECTED;
        is_here = true;
    }
    return is_here ? CT_GOING_ENDED : going_elsewhere(shm, running);
}

/* Returns the state of a process during a batch. Processes in the list count as running until all of their
 * calls have been read. */
static enum ct_going going(const struct ct_running *running, const void *data)
{
    const struct ct_shm *shm = data;
    EACH_PROCESS(p)
    {
        if (p->account.process_id == running->process_id)
            return CT_GOING_ON;
    }
    return going_elsewhere(shm, running);
}

static int end_orphans(struct ct_shm *shm, const struct ct_batch *batch)
{
    uint64_t running;
    const uint64_t left_ns = shm->earlier_until_ns ? shm->earlier_until_ns : batch->now_ns;
    if (ct_ledger_end_orphans(batch->ledger, batch->now_ns, left_ns, going, shm, &running) != 0)
        return -1;
    shm->orphans = running > 0;
    return 0;
}

/* ---- users ---- */

/* Resets the budget that each user has spent, and each user's shortages. */
static void begin_accounts(struct ct_shm *shm)
{
    EACH_PROCESS(p)
    {
        struct ct_user *user = p->who.user;
        if (!user)
            continue;
        user->waiting = user->budget.spent = 0;
        user->starts = user->writes = user->scans = 0;
        user->budget.is_held = false;
        user->quota = (struct ct_quota_report){ 0 };
    }
}

/* Divides the batch's limit, in rows of plain calls, among the users that have waiting calls. Calls that
 * exceed a user's share are left for the next batch, and will be late if other users' calls are stored before
 * them. A user who never stops publishing, claims times in the distant past or invents names thus delays only
 * that user's own calls. */
static void share_out(struct ct_shm *shm, uint64_t rows_max)
{
    uint64_t users = 0;
    EACH_PROCESS(p)
    {
        struct ct_user *user = p->who.user;
        const uint64_t waiting = user ? ct_shm_slots(p) : 0;
        users += waiting > 0 && user->waiting == 0;
        if (user)
            user->waiting += waiting;
    }
    const uint64_t share = rows_max / (users > 0 ? users : 1);
    EACH_PROCESS(p)
    {
        struct ct_user *user = p->who.user;
        if (!user)
            continue;
        user->budget.allowance = share;
        if (users < 2 || user->waiting <= share)
            continue;
        ct_shm_hold_back(p, share, user->waiting);
        user->budget.is_held = true;
    }
}

static void add_quota(struct ct_quota_report *to, const struct ct_shm_process *p)
{
    to->lanes += p->lanes_wait;
    to->functions += p->merged;
}

/* Reports which users were held back, and each user's shortages. */
static void close_accounts(struct ct_shm *shm, struct ct_report *report)
{
    EACH_PROCESS(p)
    {
        struct ct_user *user = p->who.user;
        add_quota(&report->quota, p);
        if (!user)
            continue;
        add_quota(&user->quota, p);
        if (user->budget.is_held)
            ct_report_hold(report, user->uid);
    }
    EACH_PROCESS(p)
    {
        struct ct_user *user = p->who.user;
        if (!user || (user->quota.lanes | user->quota.functions) == 0)
            continue;
        if (report->short_count < CT_HELD_MAX) {
            report->short_users[report->short_count].uid = user->uid;
            report->short_users[report->short_count].quota = user->quota;
        }
        report->short_count++;
        user->quota = (struct ct_quota_report){ 0 }; /* report each user once */
    }
}

/* ---- a batch ---- */

static void start(struct ct_source *source)
{
    struct ct_shm *shm = shm_of(source);
    if (!shm->timeline.control)
        ct_timeline_begin(&shm->timeline, shm->control, NULL);
}

static void wake(struct ct_source *source, const struct ct_request *request, struct ct_report *report)
{
    struct ct_shm *shm = shm_of(source);
    take_incoming(shm);
    report->looked_ns = shm->looked_ns;
    if (!shm->quiet)
        atomic_store_explicit(&shm->control->sleeping, 0, memory_order_relaxed);
    /* Also detach processes that were found after detaching was requested. */
    shm->detaching |= request->detach;
    EACH_PROCESS(p)
    {
        if (shm->detaching || request->let_go || atomic_load(&p->unnamed))
            ct_shm_detach(p);
    }
    start(source);
    if (request->flush_ns)
        /* The watermark is CT_PUBLISH_SLACK_NS in the past, and must reach the requested time. */
        nanosleep(&(struct timespec){ .tv_nsec = 2 * CT_PUBLISH_SLACK_NS }, NULL);
    ct_timeline_anchor(&shm->timeline);
}

/* Returns the time up to which all segments are known. A hook first creates its segment, then counts it, and
 * only then records a call. Calls in a segment that has not been read yet therefore cannot be older than this
 * time. A hook that never stops counting delays no other process, because the last scan found every segment
 * that existed.
 *
 * In the system session, hooks cannot count segments, because a user who can write the counter could delay
 * all users' rows. Instead, the event for a new file adds its segment within a batch or two. If a segment was
 * unknown during a batch, any of its calls that returned before the batch's watermark are late, and are
 * marked and counted as such. */
static uint64_t all_are_known_ns(struct ct_shm *shm, uint64_t now_ns)
{
    const uint32_t segments = atomic_load_explicit(&shm->control->segments, memory_order_acquire);
    if (segments == shm->segments_known)
        shm->all_known_ns = now_ns;
    else if (shm->looked_ns > shm->all_known_ns)
        shm->all_known_ns = shm->looked_ns;
    return shm->all_known_ns > CT_PUBLISH_SLACK_NS ? shm->all_known_ns - CT_PUBLISH_SLACK_NS : 0;
}

static int begin(struct ct_source *source, struct ct_batch *batch)
{
    struct ct_shm *shm = shm_of(source);
    EACH_PROCESS(p) ct_shm_read_complete(p);
    CT_TEST_POINT("source.completed");
    shm->silent_ns = all_are_known_ns(shm, batch->now_ns);
    EACH_PROCESS(p) ct_shm_use_complete(p, batch->now_ns, shm->all_known_ns == batch->now_ns);
    if (!shm->has_begun)
        shm->earlier_until_ns = ct_store_newest_call(batch->ledger->store) + 1;
    shm->has_begun = true;
    begin_accounts(shm);
    EACH_PROCESS(p)
    {
        if (ct_shm_sync(p, batch) != 0)
            return -1;
    }
    return 0;
}

static void watermark(struct ct_source *source, struct ct_batch *batch)
{
    struct ct_shm *shm = shm_of(source);
    if (shm->silent_ns < batch->until_ns)
        batch->until_ns = shm->silent_ns;
    EACH_PROCESS(p) ct_shm_watermark(p, batch);
}

static int streams(struct ct_source *source, struct ct_batch *batch)
{
    struct ct_shm *shm = shm_of(source);
    share_out(shm, batch->rows_max);
    EACH_PROCESS(p)
    {
        if (ct_shm_add(p, batch->ledger) != 0)
            return -1;
    }
    return 0;
}

static int write_meta(struct ct_shm *shm, const struct ct_batch *batch)
{
    if (batch->now_ns - shm->meta_written_ns < META_INTERVAL_NS)
        return 0;
    shm->meta_written_ns = batch->now_ns;
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    const int64_t now = (int64_t)ct_monotonic_ns();
    const struct ct_meta_facts offset_ns = { (int64_t)real.tv_sec * 1000000000 + real.tv_nsec - now };
    return ct_ledger_save(batch->ledger, &(struct ct_fact){ CT_FACT_META, .text = { "realtime_offset_ns" },
                                                            .meta = offset_ns });
}

/* Returns whether another live segment will report the process's end. This is the case if the hook has left
 * this segment and created another, if a probe writes this segment, or if a companion writes the other
 * segment. */
static bool goes_on(const struct ct_shm *shm, const struct ct_shm_process *ended)
{
    const bool may_go_on = ct_shm_is_left(ended) || ct_shm_is_probed(ended);
    if (ended->account.process_id == 0)
        return false;
    EACH_PROCESS(p)
    {
        if (!p->final && p->account.process_id == ended->account.process_id &&
            (may_go_on || ct_shm_is_companion(p)))
            return true;
    }
    return false;
}

/* Records in the process's other segments that the process has exited, because one of these segments will
 * report the process's end. */
static void pass_exit(const struct ct_shm *shm, const struct ct_shm_process *ended)
{
    if (!(atomic_load_explicit(&ended->shared->flags, memory_order_acquire) & CT_SEGMENT_EXITING))
        return;
    EACH_PROCESS(p)
    {
        if (!p->final && p->account.process_id == ended->account.process_id)
            atomic_fetch_or_explicit(&p->shared->flags, CT_SEGMENT_EXITING, memory_order_release);
    }
}

static int end(const struct ct_shm *shm, struct ct_shm_process *ended, struct ct_ledger *ledger)
{
    if (!goes_on(shm, ended))
        return ct_shm_end(ended, ledger);
    if (!ct_process_runs(&ended->who))
        pass_exit(shm, ended);
    return 0;
}

static int save(struct ct_source *source, struct ct_batch *batch)
{
    struct ct_shm *shm = shm_of(source);
    /* In the system session, segments are not counted, so any created after the last scan are unknown. */
    if (shm->control->system && shm->looked_ns < batch->report->flushed_ns)
        batch->report->flushed_ns = shm->looked_ns;
    EACH_PROCESS(p)
    {
        if (ct_shm_save(p, batch) != 0)
            return -1;
        if (p->final && !ct_shm_has_backlog(p) && end(shm, p, batch->ledger) != 0)
            return -1;
    }
    close_accounts(shm, batch->report);
    CT_TEST_POINT("batch.saved");
    if ((batch->snapshot_open || shm->earlier_until_ns) && shm->orphans && end_orphans(shm, batch) != 0)
        return -1;
    /* A trace whose calls were all skipped has processes with times, too. */
    const bool is_first = shm->meta_written_ns == 0 && shm->processes;
    return batch->report->rows > 0 || is_first ? write_meta(shm, batch) : 0;
}

static bool has_backlog(struct ct_shm *shm)
{
    EACH_PROCESS(p)
    {
        if (ct_shm_has_backlog(p))
            return true;
    }
    return false;
}

static void publish(struct ct_source *source, struct ct_batch *batch)
{
    struct ct_shm *shm = shm_of(source);
    const uint32_t selections = atomic_load_explicit(&shm->control->selections, memory_order_acquire);
    shm->quiet = batch->report->rows == 0 && !has_backlog(shm);
    shm->earlier_until_ns = 0;
    shm->give_back_bytes = GIVE_BACK_BYTES;
    EACH_PROCESS(p) ct_shm_publish(p, batch, selections);
    CT_TEST_POINT("batch.published");
    /* Unless `is_alone` is set, the next batch may already have taken calls from these processes. */
    if (batch->is_alone)
        sort_out(shm);
}

/* Discards state that refers to rows that were rolled back. */
static void revert(struct ct_source *source)
{
    struct ct_shm *shm = shm_of(source);
    EACH_PROCESS(p) ct_shm_revert(p);
    shm->orphans = true; /* the batch may have contained an orphan's end */
    shm->meta_written_ns = 0;
    shm->quiet = false;
}

static void rest(struct ct_source *source, struct ct_report *report)
{
    struct ct_shm *shm = shm_of(source);
    /* From here on, a producer rings the doorbell when its lane passes the position `wake`. Lanes that passed
     * their `wake` positions earlier are found as backlog. In the system session, `sleeping` is odd, and
     * therefore never 0. The first value of `sleeping` is arbitrary, because a process may remember an
     * earlier daemon's values. */
    shm->sleeps = (shm->sleeps ? shm->sleeps : (uint32_t)ct_monotonic_ns()) + 2;
    atomic_store_explicit(&shm->control->sleeping, shm->control->system ? shm->sleeps | 1 : 1,
                          memory_order_seq_cst);
    EACH_PROCESS(p)
    {
        report->backlog |= ct_shm_has_backlog(p);
        report->waiting += report->error[0] ? ct_shm_waiting(p) : 0;
        const bool is_traced = !ct_shm_is_companion(p) && !ct_shm_is_of_machine(p);
        report->processes += is_traced;
        report->probed += is_traced && ct_shm_is_probed(p);
        report->lanes += p->lane_count;
    }
}

static const struct ct_source_class shm_class = {
    .start = start,
    .wake = wake,
    .begin = begin,
    .watermark = watermark,
    .streams = streams,
    .save = save,
    .publish = publish,
    .revert = revert,
    .rest = rest,
};

void ct_shm_init(struct ct_shm *shm, const char *dir, struct ct_control *control)
{
    *shm = (struct ct_shm){ .source.class = &shm_class, .dir = dir, .control = control };
    pthread_mutex_init(&shm->handed.mutex, NULL);
}

struct ct_shm_process *ct_shm_finish(struct ct_shm *shm)
{
    take_incoming(shm);
    struct ct_shm_process *all = shm->processes, **end = &all;
    while (*end)
        end = &(*end)->next;
    *end = ct_shm_take_gone(shm);
    shm->processes = NULL;
    pthread_mutex_destroy(&shm->handed.mutex);
    return all;
}
