#include "service.h"

#include "command.h"
#include "cut_guard.h"
#include "descriptor_share.h"
#include "gpu_source.h"
#include "log.h"
#include "notify.h"
#include "process_tracking.h"
#include "quota_report.h"
#include "recorder.h"
#include "session.h"
#include "taken_name.h"
#include "test_point.h"
#include "trace_files.h"
#include "worker_thread.h"

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* A full batch is followed immediately by the next one. While calls arrive, a batch is made every PACE_MS, or
 * sooner if a ring would otherwise exceed CT_FILL_WANTED. After two empty batches in a row, the next batch
 * waits for a doorbell. Every HOUSEKEEPING_MS, the daemon checks open calls and everything that a doorbell
 * may have missed. */
enum {
    GATHER_MS = 10,
    PACE_MS = 50,
    HOUSEKEEPING_MS = 1000,
    RETRY_MS = 1000,
    FIRST_HOLDER_MS = 10000,
    STOP_PATIENCE_MS = 5000
};

struct daemon {
    const struct ct_daemon_options *options;
    uv_loop_t loop;
    struct ct_session session;
    struct ct_collection collection;
    struct ct_tracking tracking;
    struct ct_worker *worker;
    struct ct_commands *commands;
    uv_timer_t pace, housekeeping, unused, flush_due;
    uv_signal_t term, interrupt, hangup;
    struct ct_notify notify;
    char database[4096], trace[4096]; /* the first file of this daemon, and of the trace */
    struct ct_report last;
    unsigned int empty_batches;
    uint64_t batch_ms; /* time of the last report, by the loop's clock */
    bool awake;        /* the pace timer is running or a batch is being made */
    bool failing;
    bool rotating; /* new files have been requested but do not exist yet */
    bool stopping;
    bool cut_short;                 /* stops although calls wait */
    bool is_taken;                  /* another daemon has the session */
    bool files_gone;                /* the session's files were removed and have not been recreated yet */
    unsigned int made_anew;         /* how many times the session's files were recreated */
    uint64_t progress_ms;           /* when the stop began, or when something was last stored during it */
    char stamp[CT_LOG_STAMP_BYTES]; /* when the daemon began or ceased to fail */
};

/* Sends a line about the daemon's state, to be shown by `systemctl status`. */
static void tell_status(struct daemon *daemon)
{
    const struct ct_report *last = &daemon->last;
    const char *state = daemon->stopping ? "stopping" : daemon->failing ? last->error : "ok";
    char text[200];
    snprintf(text, sizeof(text), "%u processes, %u threads, %llu calls stored; %.120s", last->processes,
             last->lanes, (unsigned long long)last->rows_total, state);
    ct_notify_status(&daemon->notify, text);
}

static void on_pace(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    /* After a failure, include the open calls, which may be the cause and are not in every batch. */
    ct_worker_request(daemon->worker, (struct ct_request){ .snapshot_open = daemon->failing });
}

static void batch_in(struct daemon *daemon, unsigned int ms)
{
    daemon->awake = true;
    if (ms == 0)
        ct_worker_request(daemon->worker, (struct ct_request){ 0 });
    else
        uv_timer_start(&daemon->pace, on_pace, ms, 0);
}

/* Returns how soon the fullest ring will reach CT_FILL_WANTED if it keeps filling as fast as it has since the
 * last batch. The result already excludes the time since the last batch was read, during which the ring has
 * kept filling. The remaining room in the ring absorbs a checkpoint or a slow disk. */
static unsigned int pace_ms(const struct ct_report *report, uint64_t since_last_ms)
{
    if (report->fill == 0)
        return PACE_MS;
    const uint64_t ms = since_last_ms * CT_FILL_WANTED / report->fill,
                   passed_ms = (ct_monotonic_ns() - report->began_ns) / 1000000;
    if (ms >= PACE_MS)
        return PACE_MS;
    return ms > passed_ms ? (unsigned int)(ms - passed_ms) : 0;
}

/* ---- processes ---- */

static void on_end(void *data)
{
    batch_in(data, 0);
}

static void on_found(void *data)
{
    struct daemon *daemon = data;
    batch_in(daemon, daemon->awake ? 0 : GATHER_MS);
}

/* ---- batches ---- */

static void stop_loop(struct daemon *daemon);

/* The message about the recovery repeats the error, because the log may be on the same full disk as the
 * database. */
static void note_failing(struct daemon *daemon, const struct ct_report *report)
{
    if (!daemon->failing)
        ct_log(CT_LOG_database_failed,
               "%s; calls stay in shared memory, and are only counted once it is full; retrying every second",
               report->error);
    else
        ct_log(CT_LOG_database_back, "the database can be written again; writing had failed since %s (%s)",
               daemon->stamp, daemon->last.error);
    daemon->failing = !daemon->failing;
    ct_log_stamp(daemon->stamp);
}

static void note_checkpoint(const struct daemon *daemon, const struct ct_report *report)
{
    const bool before = daemon->last.checkpoint_error[0], now = report->checkpoint_error[0];
    if (now && !before)
        ct_log(CT_LOG_checkpoint_failed,
               "cannot copy the write-ahead log into the database: %s; the log grows until it can be copied",
               report->checkpoint_error);
    else if (before && !now)
        ct_log(CT_LOG_checkpoint_back, "the write-ahead log can be copied into the database again");
}

static bool holds(uint32_t uid, bool all, const void *data)
{
    return ct_report_holds(&((const struct daemon *)data)->last, uid, all);
}

static bool misses(uint32_t uid, bool all, char *text, size_t bytes, const void *data)
{
    const struct daemon *daemon = data;
    const struct ct_quota_report quota = ct_quota_report_of(&daemon->last, daemon->tracking.watch, uid, all);
    return ct_quota_report_say(&quota, text, bytes);
}

/* Makes batches while the daemon is stopping, until no calls are waiting or no more can be stored. */
static void go_on_stopping(struct daemon *daemon, const struct ct_report *report)
{
    if (report->rows > 0)
        daemon->progress_ms = daemon->batch_ms;
    daemon->cut_short = report->backlog && daemon->batch_ms - daemon->progress_ms > STOP_PATIENCE_MS;
    if (daemon->cut_short)
        ct_log(CT_LOG_stop_cut_short,
               "no calls stored for %d seconds: stopping; the rest stays in shared memory for a later daemon",
               STOP_PATIENCE_MS / 1000);
    if (daemon->failing || daemon->cut_short || (!report->backlog && !ct_worker_busy(daemon->worker)))
        stop_loop(daemon);
    else
        batch_in(daemon, 0);
}

static void plan_next(struct daemon *daemon, const struct ct_report *report, uint64_t since_last_ms)
{
    const uint64_t flush_ns = ct_commands_waiting(daemon->commands);
    if (daemon->failing) {
        batch_in(daemon, RETRY_MS);
    } else if (flush_ns) {
        daemon->awake = true;
        if (!uv_is_active((uv_handle_t *)&daemon->flush_due)) /* otherwise on_flush_due() requests it */
            ct_worker_request(daemon->worker, (struct ct_request){ .flush_ns = flush_ns });
    } else if (report->more) {
        batch_in(daemon, 0);
    } else if (report->rows > 0 || report->backlog || report->expiring) {
        daemon->empty_batches = 0;
        batch_in(daemon, pace_ms(report, since_last_ms));
    } else if (++daemon->empty_batches < 2) {
        batch_in(daemon, PACE_MS);
    } else {
        uv_timer_stop(&daemon->pace);
        daemon->awake = false;
    }
}

static void on_batch(const struct ct_report *report, void *data)
{
    struct daemon *daemon = data;
    const bool any_gone = ct_tracking_close_gone(&daemon->tracking);
    /* malloc does not, on its own, return the fragmented memory of a thousand processes to the kernel. */
    if (any_gone && report->processes == 0)
        malloc_trim(0);
    if (daemon->rotating && (report->has_gone_on || !ct_worker_busy(daemon->worker))) {
        daemon->rotating = false;
        ct_notify_say(&daemon->notify, "READY=1");
    }
    ct_tracking_look_for_counted(&daemon->tracking);
    const bool failed = report->error[0] != '\0';
    if (failed != daemon->failing)
        note_failing(daemon, report);
    note_checkpoint(daemon, report);
    if (!failed)
        ct_quota_report_note(report, &daemon->last, daemon->options->system);
    const bool changed = failed != (daemon->last.error[0] != 0);
    daemon->last = *report;
    if (changed)
        tell_status(daemon);
    if (report->rows > 0)
        ct_log(CT_LOG_batch, "batch %llu: %llu calls of %u processes",
               (unsigned long long)report->batches_total, (unsigned long long)report->rows,
               report->processes);
    CT_TEST_POINT("daemon.answering");
    const struct ct_flush_answers answers = { holds, misses, daemon };
    ct_commands_flushed(daemon->commands, failed ? report->looked_ns : report->flushed_ns, &answers,
                        failed ? report->error : NULL);
    ct_commands_answer_gpu(daemon->commands, &daemon->tracking.gpu_targets);
    const uint64_t now_ms = uv_now(&daemon->loop), since_last_ms = now_ms - daemon->batch_ms;
    daemon->batch_ms = now_ms;
    if (daemon->stopping)
        go_on_stopping(daemon, report);
    else
        plan_next(daemon, report, since_last_ms);
}

static void on_doorbell(void *data)
{
    struct daemon *daemon = data;
    ct_tracking_look_for_counted(&daemon->tracking);
    if (daemon->failing)
        return;
    daemon->empty_batches = 0;
    batch_in(daemon, daemon->awake ? 0 : GATHER_MS);
}

static void begin_stop(void *data);

/* Recreates the session's files if they were removed, for example by systemd-logind at the user's last
 * logout, and makes the hooks look for the session again. If another daemon has taken the session, stores the
 * recorded calls and stops. */
static void check_files(struct daemon *daemon)
{
    const bool session = ct_session_is_named(&daemon->session),
               socket = ct_commands_are_named(daemon->commands);
    if ((session && socket) || daemon->stopping)
        return;
    const enum ct_session_renewal renewal = session ? CT_RENEWED : ct_session_renew(&daemon->session);
    if (renewal == CT_TAKEN) {
        ct_log(CT_LOG_session_taken,
               "the session's files were removed, and another cudatraced now serves session '%s': storing "
               "the recorded calls, then stopping",
               daemon->session.name);
        daemon->is_taken = true;
        begin_stop(daemon);
        return;
    }
    const bool whole = renewal == CT_RENEWED && (socket || ct_commands_renew(daemon->commands));
    if (whole || !daemon->files_gone)
        ct_log(CT_LOG_files_gone,
               "the session's %s removed by another program, and %s; systemd-logind removes a user's files "
               "at the last logout (RemoveIPC=)",
               session  ? "socket was"
               : socket ? "control segment was"
                        : "files were",
               whole ? "recreated by this daemon" : "cannot be recreated; retrying every second");
    daemon->files_gone = !whole;
    daemon->made_anew += whole;
    if (!session && renewal == CT_RENEWED)
        ct_worker_request(daemon->worker, (struct ct_request){ .let_go = true });
}

static void on_housekeeping(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    check_files(daemon);
    ct_tracking_look_around(&daemon->tracking);
    if (daemon->options->clock == CT_CLOCK_CHOSEN)
        ct_session_check_clock(&daemon->session);
    ct_commands_answer_gpu(daemon->commands, &daemon->tracking.gpu_targets);
    tell_status(daemon);
    ct_log_catch_up(ct_monotonic_ns());
    if (!daemon->failing && !daemon->stopping)
        ct_worker_request(daemon->worker, (struct ct_request){ .snapshot_open = true });
}

/* ---- commands ---- */

static void on_flush_due(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    ct_tracking_look_around(&daemon->tracking);
    ct_worker_request(daemon->worker,
                      (struct ct_request){ .flush_ns = ct_commands_waiting(daemon->commands) });
}

/* In the system session, where users may flush as often as they like, a single scan serves all flushes
 * requested within ten milliseconds. */
static void on_flush(uint64_t flush_ns, void *data)
{
    struct daemon *daemon = data;
    if (daemon->options->system) {
        if (!uv_is_active((uv_handle_t *)&daemon->flush_due))
            uv_timer_start(&daemon->flush_due, on_flush_due, GATHER_MS, 0);
        return;
    }
    ct_tracking_look_around(&daemon->tracking);
    ct_worker_request(daemon->worker, (struct ct_request){ .flush_ns = flush_ns });
}

/* Appends how many processes and threads are waiting, and how many functions are recorded under a common
 * name. */
static void add_quota(char *text, size_t bytes, const struct ct_quota_report *quota)
{
    const size_t length = strlen(text);
    snprintf(text + length, bytes - length, "waiting_processes %u\nwaiting_threads %u\nmerged_functions %u\n",
             quota->segments, quota->lanes, quota->functions);
}

static void on_status_for_others(char *text, size_t bytes, uint32_t uid, void *data)
{
    const struct daemon *daemon = data;
    snprintf(text, bytes, "session %s\ndaemon %d\nserves all users\nstate %s\n", daemon->session.name,
             (int)getpid(), daemon->failing ? "the trace cannot be written" : "ok");
    const struct ct_quota_report his = ct_quota_report_of(&daemon->last, daemon->tracking.watch, uid, false);
    if ((his.segments | his.lanes | his.functions) > 0)
        add_quota(text, bytes, &his);
}

static void on_status(char *text, size_t bytes, void *data)
{
    const struct daemon *daemon = data;
    const struct ct_report *last = &daemon->last;
    const struct ct_selection selection = ct_session_selection(&daemon->session);
    char layers[64] = "", file[4096];
    ct_trace_file(file, sizeof(file), daemon->trace, last->file);
    for (uint32_t layer = 0; layer < CT_LAYER_COUNT; layer++) {
        if (selection.layers & 1U << layer)
            snprintf(layers + strlen(layers), sizeof(layers) - strlen(layers), "%s%s", *layers ? "," : "",
                     ct_layer_names[layer]);
    }
    snprintf(text, bytes,
             "session %s\ndatabase %s\nfile %s\nlog %llu bytes\ndaemon %d\nprocesses %u\nprobed %u\n"
             "threads %u\nstored %llu\nlate %llu\nexpired %llu\nrefused %llu\nignored %u\ndetached %llu\n"
             "batches %llu\nclock %s\nlayers %s\ncalls %s\nsample %u\nstoring %s%s\ncheckpoints %s\n"
             "waiting %llu\nstays %s\nsince %s\nstate %s\n",
             daemon->session.name, daemon->database, file, (unsigned long long)last->log_bytes, (int)getpid(),
             last->processes, last->probed, last->lanes, (unsigned long long)last->rows_total,
             (unsigned long long)last->late_total, (unsigned long long)last->expired_total,
             (unsigned long long)ct_watch_refused(daemon->tracking.watch),
             ct_watch_ignored(daemon->tracking.watch), (unsigned long long)daemon->tracking.detached,
             (unsigned long long)last->batches_total,
             daemon->session.control->clock != CT_CLOCK_COUNTER ? "clock_gettime"
             : daemon->session.is_clock_doubted                 ? "counter, which the kernel no longer trusts"
                                                                : "counter",
             layers, *selection.calls ? selection.calls : "*", selection.sample,
             *last->by_row ? "one by one: " : "a page at a time", last->by_row,
             *last->checkpoint_error ? last->checkpoint_error : "ok", (unsigned long long)last->waiting,
             daemon->options->leave_when_unused ? CT_STAYS_WHILE_USED : CT_STAYS_UNTIL_STOPPED, daemon->stamp,
             daemon->failing ? last->error : "ok");
    const struct ct_quota_report all = ct_quota_report_of(last, daemon->tracking.watch, 0, true);
    add_quota(text, bytes, &all);
    char gpu[CT_MESSAGE_BYTES], *const end = text + strlen(text);
    ct_gpu_request_say(&daemon->tracking.gpu_targets, 0, gpu, sizeof(gpu));
    snprintf(end, bytes - (size_t)(end - text), "gpu %s\nmade_anew %u\nunrecorded %u\nunprobed %u\n", gpu,
             daemon->made_anew, daemon->tracking.unrecorded.reported, daemon->tracking.unrecorded.unprobed);
}

/* The next batch passes the selection on to the hooks. */
static bool on_set(const char *settings, char *problem, size_t bytes, void *data)
{
    struct daemon *daemon = data;
    if (!ct_session_select(&daemon->session, settings, problem, bytes))
        return false;
    batch_in(daemon, 0);
    return true;
}

static bool on_gpu(const char *text, struct ct_gpu_request *request, char *problem, size_t bytes, void *data)
{
    struct daemon *daemon = data;
    ct_tracking_look_around(&daemon->tracking);
    if (!ct_gpu_request_read(text, request, problem, bytes) ||
        !ct_gpu_request_make(&daemon->tracking.gpu_targets, request, problem, bytes))
        return false;
    batch_in(daemon, 0);
    return true;
}

/* Makes the hooks detach, then stores everything that they have published. */
static void begin_stop(void *data)
{
    struct daemon *daemon = data;
    if (daemon->stopping)
        return;
    daemon->stopping = true;
    daemon->progress_ms = uv_now(&daemon->loop);
    ct_notify_say(&daemon->notify, "STOPPING=1");
    tell_status(daemon);
    ct_log(CT_LOG_stopping, "stopping: storing all recorded calls");
    ct_session_hide(&daemon->session);
    ct_tracking_look(&daemon->tracking);
    ct_worker_request(daemon->worker, (struct ct_request){ .detach = true, .flush_ns = ct_monotonic_ns() });
}

static void on_signal(uv_signal_t *signal, int number)
{
    (void)number;
    begin_stop(signal->data);
}

/* The log need not be reopened, because it is opened for each line. on_batch() reports the reload as
 * complete. */
static void rotate(struct daemon *daemon)
{
    daemon->rotating = true;
    ct_notify_reloading(&daemon->notify);
    ct_log(CT_LOG_rotated, "received SIGHUP: beginning the trace's next file, and a new log if it was moved");
    ct_worker_request(daemon->worker, (struct ct_request){ .next_file = true });
}

/* If the daemon has a controlling terminal, SIGHUP means a hang-up, and stops the daemon as it would any
 * program. Otherwise, SIGHUP is a request to rotate, for example from logrotate. */
static void on_hangup(uv_signal_t *signal, int number)
{
    struct daemon *daemon = signal->data;
    if (daemon->options->on_terminal)
        on_signal(signal, number);
    else
        rotate(daemon);
}

static void on_unused(uv_timer_t *timer)
{
    begin_stop(timer->data);
}

static bool may_hold(void *data)
{
    return !((struct daemon *)data)->stopping;
}

static bool on_holders(bool begins, size_t count, void *data)
{
    struct daemon *daemon = data;
    uv_timer_stop(&daemon->unused);
    if (begins)
        ct_store_begin_run(daemon->collection.ledger.store);
    if (count > 0 || !daemon->options->leave_when_unused)
        return false;
    begin_stop(daemon);
    return true;
}

/* ---- life ---- */

static void stop_loop(struct daemon *daemon)
{
    if (uv_is_closing((uv_handle_t *)&daemon->pace))
        return;
    uv_handle_t *const handles[] = { (uv_handle_t *)&daemon->pace,      (uv_handle_t *)&daemon->housekeeping,
                                     (uv_handle_t *)&daemon->unused,    (uv_handle_t *)&daemon->term,
                                     (uv_handle_t *)&daemon->interrupt, (uv_handle_t *)&daemon->hangup,
                                     (uv_handle_t *)&daemon->flush_due };
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++)
        uv_close(handles[i], NULL);
    ct_worker_destroy(daemon->worker);
    ct_gpu_source_destroy(daemon->tracking.unrecorded.source.next);
    struct ct_ledger *ledger = &daemon->collection.ledger;
    ct_tracking_end(&daemon->tracking, daemon->failing ? NULL : ledger, daemon->cut_short);
    CT_TEST_POINT("daemon.let_go");
    ct_ledger_finish(ledger);
    ct_store_close(ledger->store);
    CT_TEST_POINT("daemon.store_closed");
    ledger->store = NULL;
    ct_session_close(&daemon->session);
    ct_tracking_finish(&daemon->tracking);
    ct_commands_destroy(daemon->commands, daemon->tracking.left, daemon->failing ? daemon->last.error : NULL);
    ct_notify_finish(&daemon->notify);
    ct_log_catch_up(UINT64_MAX);
}

/* `path` is the file that could not be created, or "". */
static int cannot_start(const char *path, int error, char *message)
{
    ct_message(message, "cannot start: %s", uv_strerror(error));
    if (*path)
        ct_taken_explain(path, -error, message, CT_MESSAGE_BYTES);
    return 1;
}

static int start(struct daemon *daemon, char *message)
{
    const struct ct_daemon_options *options = daemon->options;
    int error = uv_loop_init(&daemon->loop);
    if (error)
        return cannot_start("", error, message);
    if (ct_session_open(&daemon->session, options->shm_dir, options->session, options->system,
                        ct_trace_identity(options->database), options->ring_bytes, options->clock,
                        options->starter, message) != 0)
        return 1;
    struct ct_ledger *ledger = &daemon->collection.ledger;
    /* Check the recording's file first, but overwrite the file only once the database is open. */
    if ((options->record &&
         ct_recorder_create(options->record, options->session, &ledger->recorder, message) != 0) ||
        ct_store_open(options->database, options->session, &ledger->store, message) != 0 ||
        ct_recorder_begin(ledger->recorder, message) != 0) {
        ct_store_close(ledger->store);
        ct_recorder_destroy(ledger->recorder);
        ct_session_close(&daemon->session);
        return 1;
    }
    snprintf(daemon->database, sizeof(daemon->database), "%s", ct_store_path(ledger->store));
    snprintf(daemon->trace, sizeof(daemon->trace), "%s", ct_store_trace(ledger->store));
    daemon->last.file = ct_store_file(ledger->store);
    if (daemon->last.file > 1)
        ct_log(CT_LOG_file_begun,
               "writing to %s: the earlier files, from %s on, are complete, or of another boot or version",
               daemon->database, daemon->trace);
    ct_log_stamp(daemon->stamp);
    uv_update_time(&daemon->loop);
    ct_tracking_init(&daemon->tracking, &daemon->loop, options->shm_dir, daemon->session.control, on_found,
                     on_end, daemon);
    uv_timer_t *const timers[] = { &daemon->pace, &daemon->housekeeping, &daemon->unused,
                                   &daemon->flush_due };
    for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++)
        uv_timer_init(&daemon->loop, timers[i]);
    uv_signal_init(&daemon->loop, &daemon->term);
    uv_signal_init(&daemon->loop, &daemon->interrupt);
    uv_signal_init(&daemon->loop, &daemon->hangup);
    ct_notify_init(&daemon->notify, &daemon->loop, options->foreground);
    daemon->pace.data = daemon->housekeeping.data = daemon->unused.data = daemon->flush_due.data = daemon;
    daemon->term.data = daemon->interrupt.data = daemon->hangup.data = daemon;
    const struct ct_command_handler handler = { .flush = on_flush,
                                                .stop = begin_stop,
                                                .set = on_set,
                                                .gpu = on_gpu,
                                                .status = on_status,
                                                .status_for_others = on_status_for_others,
                                                .system = options->system,
                                                .may_hold = may_hold,
                                                .holders = on_holders,
                                                .database = daemon->database,
                                                .readers = options->readers,
                                                .data = daemon };
    daemon->collection.sources = &daemon->tracking.shm.source;
    daemon->collection.bounds = options->bounds;
    daemon->tracking.unrecorded.source.next = ct_gpu_source_create(options->gpu_interval_ns);
    if (options->workers > 1)
        ct_store_commit_by_thread(ledger->store);
    error = ct_worker_create(&daemon->loop, &daemon->collection, on_batch, daemon, &daemon->worker);
    if (!error)
        error = ct_tracking_start(&daemon->tracking, &daemon->session, options->system);
    if (error)
        return cannot_start("", error, message);
    if ((error = ct_commands_create(&daemon->loop, daemon->session.socket_path, &handler,
                                    &daemon->commands)) != 0)
        return cannot_start(daemon->session.socket_path, error, message);
    if ((error = ct_session_listen(&daemon->session, &daemon->loop, on_doorbell, daemon)) != 0)
        return cannot_start(options->system ? daemon->session.bell_path : "", error, message);
    uv_signal_start(&daemon->term, on_signal, SIGTERM);
    uv_signal_start(&daemon->interrupt, on_signal, SIGINT);
    uv_signal_start(&daemon->hangup, on_hangup, SIGHUP);
    uv_timer_start(&daemon->housekeeping, on_housekeeping, HOUSEKEEPING_MS, HOUSEKEEPING_MS);
    if (options->leave_when_unused)
        uv_timer_start(&daemon->unused, on_unused, FIRST_HOLDER_MS, 0);
    ct_tracking_look(&daemon->tracking);
    batch_in(daemon, 0);
    return 0;
}

int ct_daemon_run(const struct ct_daemon_options *options, void (*on_ready)(void *data), void *data,
                  char message[CT_MESSAGE_BYTES])
{
    /* If the daemon fails to start, the process exits, which releases everything. */
    static struct daemon daemon;
    daemon.options = options;
    signal(SIGPIPE, SIG_IGN);
    ct_guard_install();
    if (!ct_descriptors_require(message) || start(&daemon, message) != 0)
        return 1;
    on_ready(data);
    char name[CT_LOG_NAME_BYTES];
    ct_log(CT_LOG_serving, "serving session %s, database %s", daemon.session.name,
           ct_log_quote(name, daemon.database));
    tell_status(&daemon);
    ct_notify_say(&daemon.notify, "READY=1");
    uv_run(&daemon.loop, UV_RUN_DEFAULT);
    uv_loop_close(&daemon.loop);
    return daemon.failing || daemon.is_taken ? 1 : 0;
}
