#include "unrecorded_source.h"

#include "clock.h"
#include "interner.h"
#include "log.h"
#include "proc_file.h"
#include "real_user.h"

#include <errno.h>
#include <string.h>

enum {
    OF_USER_MAX = 64,    /* of each other user, ever, while fewer than OF_OTHERS_MAX are listed */
    OF_OTHERS_MAX = 256, /* of all other users, ever; beyond that, OF_USER_MIN of each user */
    OF_USER_MIN = 8,
    KEPT = 64,         /* places that only the daemon's own user may take */
    RECEIVE_MAX = 640, /* reports read in PAUSE_MS */
    PAUSE_MS = 100,
    QUEUE = 4096, /* reports that wait; the kernel may have a lower limit (net.core.somaxconn) */
};
#define PATIENCE_NS UINT64_C(1000000000) /* from a connection to its report */

static const char *const causes[CT_UNRECORDED_COUNT] = {
#define UNRECORDED(constant, name, explanation) [CT_UNRECORDED_##constant] = #name,
#include "unrecorded.def"
#undef UNRECORDED
};

static struct ct_unrecorded *of(struct ct_source *source)
{
    return (struct ct_unrecorded *)source;
}

/* ---- reports ---- */

/* Returns whether a listed process is the one that has sent the report. A process may send its last report
 * and end before the daemon reads its start time. */
static bool is_same(const struct ct_unrecorded_process *process, uint64_t start_ticks, uint64_t image)
{
    return process->start_ticks && start_ticks ? process->start_ticks == start_ticks
                                               : process->image == image;
}

static struct ct_unrecorded_process *find(struct ct_unrecorded *unrecorded, int32_t pid, uint32_t uid,
                                          uint32_t cause, uint64_t start_ticks, uint64_t image)
{
    for (uint32_t i = 0; i < unrecorded->count; i++) {
        struct ct_unrecorded_process *process = &unrecorded->process[i];
        /* A probe reports several groups of processes in its own name. */
        const bool is_image =
            ct_unrecorded_is_probes(cause) ? process->image == image : is_same(process, start_ticks, image);
        if (process->facts.pid == pid && process->facts.uid == uid && is_image &&
            (process->cause == cause ||
             (process->cause < CT_UNRECORDED_REFUSED && cause < CT_UNRECORDED_REFUSED)))
            return process;
    }
    return NULL;
}

static uint32_t count_of_user(const struct ct_unrecorded *unrecorded, uint32_t uid)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < unrecorded->count; i++)
        count += unrecorded->process[i].is_bounded && unrecorded->process[i].facts.uid == uid;
    return count;
}

/* Returns a place for a process of the user, or NULL. The oldest saved process that is not bounded makes
 * room. */
static struct ct_unrecorded_process *find_place(struct ct_unrecorded *unrecorded, uint32_t uid,
                                                bool is_bounded)
{
    const uint32_t most = unrecorded->others < OF_OTHERS_MAX ? OF_USER_MAX : OF_USER_MIN;
    if (is_bounded &&
        (unrecorded->others >= CT_UNRECORDED_MAX - KEPT || count_of_user(unrecorded, uid) >= most))
        return NULL;
    struct ct_unrecorded_process *place = NULL;
    if (unrecorded->count < CT_UNRECORDED_MAX)
        place = &unrecorded->process[unrecorded->count++];
    for (uint32_t i = 0; !place && i < CT_UNRECORDED_MAX; i++) {
        struct ct_unrecorded_process *process = &unrecorded->process[i];
        if (!process->is_bounded && !process->is_new && !process->is_saved)
            place = process;
    }
    unrecorded->others += place && is_bounded;
    return place;
}

/* Returns the entry of the process, which is new or has changed, or NULL if there is no place for it. */
static struct ct_unrecorded_process *get(struct ct_unrecorded *unrecorded, int32_t pid, uint32_t uid,
                                         uint32_t cause, uint64_t image)
{
    const int64_t now_ns = (int64_t)ct_monotonic_ns();
    const bool is_bounded = uid != unrecorded->own_uid && !ct_unrecorded_is_probes(cause);
    struct ct_proc_stat stat = { 0 };
    if (pid > 0 && cause != CT_UNRECORDED_REFUSED && ct_proc_stat(pid, &stat) != 0)
        stat.start_ticks = 0;
    struct ct_unrecorded_process *process = find(unrecorded, pid, uid, cause, stat.start_ticks, image);
    if (!process) {
        process = find_place(unrecorded, uid, is_bounded);
        if (!process) {
            ct_log(CT_LOG_unrecorded,
                   "process %d of user %u cannot be recorded, and is not listed, because there are too many",
                   pid, uid);
            return NULL;
        }
        *process = (struct ct_unrecorded_process){
            .facts = { .pid = pid, .uid = uid, .first_ns = now_ns },
            .start_ticks = stat.start_ticks,
            .image = image,
            .cause = cause,
            .is_bounded = is_bounded,
        };
        unrecorded->reported++;
    }
    process->facts.last_ns = now_ns;
    process->is_new = true;
    return process;
}

/* Returns why a probe does not record a process, or NULL if the errno says it. */
static const char *reason_of(int error)
{
    return error == EDQUOT    ? "its user's processes have their share of the probe's channels"
           : error == ENOSPC  ? "no channel of the probe is free"
           : error == ENOBUFS ? "they are too many to be listed"
                              : NULL;
}

/* The report's numbers are the process's own, which may be wrong, but must be valid in the database. */
static bool take(struct ct_unrecorded *unrecorded, const struct ct_unrecorded_report *report,
                 const struct ucred *sender)
{
    const bool is_probes = ct_unrecorded_is_probes(report->cause);
    const uint32_t before = unrecorded->reported;
    struct ct_unrecorded_process *process =
        get(unrecorded, is_probes ? report->pid : sender->pid, is_probes ? report->uid : sender->uid,
            report->cause, report->image);
    if (!process)
        return false;
    if (is_probes && unrecorded->reported != before)
        unrecorded->unprobed += report->processes;
    /* A program that the process has executed counts its calls from 0 again. */
    if (process->image != report->image)
        process->earlier_calls = process->facts.calls;
    process->image = report->image;
    process->cause = report->cause;
    process->error = report->error < 4096 ? (int)report->error : EINVAL;
    process->reason = is_probes ? reason_of(process->error) : NULL;
    ct_text_clean(process->cmdline, report->cmdline, strnlen(report->cmdline, sizeof(report->cmdline) - 1));
    const uint64_t most = CT_UNSENT_CALLS_MAX - (uint64_t)process->earlier_calls;
    const uint64_t calls = (uint64_t)process->earlier_calls + (report->calls < most ? report->calls : most);
    if ((int64_t)calls > process->facts.calls)
        process->facts.calls = (int64_t)calls;
    return true;
}

void ct_unrecorded_refused(struct ct_unrecorded *unrecorded, int32_t pid, uint32_t uid, const char *reason)
{
    uv_mutex_lock(&unrecorded->lock);
    struct ct_unrecorded_process *process = get(unrecorded, pid, uid, CT_UNRECORDED_REFUSED, 0);
    if (process)
        process->reason = reason;
    uv_mutex_unlock(&unrecorded->lock);
    if (process)
        unrecorded->on_report(unrecorded->data);
}

/* Returns whether the sender may report with this cause. */
static bool may_report(const struct ct_unrecorded *unrecorded, const struct ct_unrecorded_report *report,
                       const struct ucred *sender)
{
    if (ct_unrecorded_is_probes(report->cause))
        return (sender->uid == 0 || sender->uid == unrecorded->own_uid) && report->pid > 0;
    return report->cause < CT_UNRECORDED_REFUSED;
}

enum received { REPORT, NOTHING, NOT_YET };

static enum received receive(int fd, struct ct_unrecorded_report *report, struct ucred *sender)
{
    socklen_t room = sizeof(*sender);
    const ssize_t bytes = recv(fd, report, sizeof(*report), MSG_DONTWAIT | MSG_TRUNC);
    if (bytes < 0)
        return errno == EAGAIN ? NOT_YET : NOTHING;
    return bytes == sizeof(*report) && report->magic == CT_UNRECORDED_MAGIC &&
                   getsockopt(fd, SOL_SOCKET, SO_PEERCRED, sender, &room) == 0
               ? REPORT
               : NOTHING;
}

/* Returns whether there is a place for a process that is not bounded. Reports otherwise stay in the socket,
 * and senders that can wait do so. */
static bool has_place(const struct ct_unrecorded *unrecorded)
{
    bool has_one = unrecorded->count < CT_UNRECORDED_MAX;
    for (uint32_t i = 0; !has_one && i < CT_UNRECORDED_MAX; i++) {
        const struct ct_unrecorded_process *process = &unrecorded->process[i];
        has_one = !process->is_bounded && !process->is_new && !process->is_saved;
    }
    return has_one;
}

/* Takes the report of a connection, and closes it, unless its report has not arrived yet. Returns whether a
 * process was added or has changed. */
static bool take_from(struct ct_unrecorded *unrecorded, const struct ct_connection *connection)
{
    struct ct_unrecorded_report report;
    struct ucred sender;
    const enum received received = receive(connection->fd, &report, &sender);
    const bool is_late = ct_monotonic_ns() - connection->since_ns > PATIENCE_NS;
    if (received == NOT_YET && !is_late && unrecorded->waiting_count < CT_UNRECORDED_WAITING) {
        unrecorded->waiting[unrecorded->waiting_count++] = *connection;
        return false;
    }
    const bool has_changed =
        received == REPORT && may_report(unrecorded, &report, &sender) && take(unrecorded, &report, &sender);
    close(connection->fd);
    return has_changed;
}

/* Reads the reports that have arrived. Returns whether a process was added or has changed. */
static bool receive_all(struct ct_unrecorded *unrecorded)
{
    bool has_changed = false;
    uv_mutex_lock(&unrecorded->lock);
    const uint32_t waited = unrecorded->waiting_count;
    struct ct_connection waiting[CT_UNRECORDED_WAITING];
    memcpy(waiting, unrecorded->waiting, sizeof(waiting));
    unrecorded->waiting_count = 0;
    for (uint32_t i = 0; i < waited; i++)
        has_changed |= take_from(unrecorded, &waiting[i]);
    for (int i = 0; i < RECEIVE_MAX && unrecorded->socket >= 0 && has_place(unrecorded); i++) {
        const int fd = accept4(unrecorded->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            break;
        has_changed |= take_from(unrecorded, &(struct ct_connection){ fd, ct_monotonic_ns() });
    }
    uv_mutex_unlock(&unrecorded->lock);
    return has_changed;
}

static void on_pause(uv_timer_t *timer);
static void on_readable(uv_poll_t *poll, int status, int events);

static void receive_more(struct ct_unrecorded *unrecorded)
{
    const bool has_changed = receive_all(unrecorded);
    uv_timer_start(&unrecorded->pause, on_pause, PAUSE_MS, 0);
    if (has_changed)
        unrecorded->on_report(unrecorded->data);
}

static void on_pause(uv_timer_t *timer)
{
    struct ct_unrecorded *unrecorded = timer->data;
    uv_mutex_lock(&unrecorded->lock);
    const bool is_waiting = unrecorded->waiting_count > 0;
    uv_mutex_unlock(&unrecorded->lock);
    uv_poll_start(&unrecorded->poll, UV_READABLE, on_readable);
    if (is_waiting)
        receive_more(unrecorded);
}

/* Reads reports at once, but at most RECEIVE_MAX every PAUSE_MS. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    uv_poll_stop(poll);
    receive_more(poll->data);
}

/* ---- the source ---- */

/* Takes the reports that have been sent before the batch, which may be the last one. */
static int begin(struct ct_source *source, struct ct_batch *batch)
{
    (void)batch;
    receive_all(of(source));
    return 0;
}

static int streams(struct ct_source *source, struct ct_batch *batch)
{
    (void)source, (void)batch;
    return 0;
}

static void watermark(struct ct_source *source, struct ct_batch *batch)
{
    (void)source, (void)batch;
}

/* A batch with facts is committed before the next one begins, so publish() and revert() refer to these facts.
 */
static int save(struct ct_source *source, struct ct_batch *batch)
{
    struct ct_unrecorded *unrecorded = of(source);
    int error = 0;
    uv_mutex_lock(&unrecorded->lock);
    for (uint32_t i = 0; i < unrecorded->count && !error; i++) {
        struct ct_unrecorded_process *process = &unrecorded->process[i];
        if (!process->is_new)
            continue;
        const struct ct_fact fact = { .type = CT_FACT_UNRECORDED,
                                      .text = { causes[process->cause],
                                                process->reason ? process->reason : strerror(process->error),
                                                process->cmdline },
                                      .unrecorded = process->facts };
        error = ct_ledger_save(batch->ledger, &fact);
        process->is_new = false;
        process->is_saved = batch->is_alone = true;
    }
    uv_mutex_unlock(&unrecorded->lock);
    return error;
}

static void end_batch(struct ct_unrecorded *unrecorded, bool is_committed)
{
    uv_mutex_lock(&unrecorded->lock);
    for (uint32_t i = 0; i < unrecorded->count; i++) {
        struct ct_unrecorded_process *process = &unrecorded->process[i];
        process->is_new |= process->is_saved && !is_committed;
        process->is_saved = false;
    }
    uv_mutex_unlock(&unrecorded->lock);
}

static void publish(struct ct_source *source, struct ct_batch *batch)
{
    (void)batch;
    end_batch(of(source), true);
}

static void revert(struct ct_source *source)
{
    end_batch(of(source), false);
}

static void rest(struct ct_source *source, struct ct_report *report)
{
    (void)source, (void)report;
}

static const struct ct_source_class unrecorded_class = {
    .begin = begin,
    .watermark = watermark,
    .streams = streams,
    .save = save,
    .publish = publish,
    .revert = revert,
    .rest = rest,
};

/* ---- life ---- */

/* Returns a descriptor or -errno. */
static int listen_at(const char *dir, uint32_t uid, const char *session)
{
    struct sockaddr_un address;
    const socklen_t bytes = ct_unrecorded_address(&address, dir, uid, session);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, bytes) == 0 && listen(fd, QUEUE) == 0)
        return fd;
    const int error = errno;
    if (fd >= 0)
        close(fd);
    return -error;
}

void ct_unrecorded_init(struct ct_unrecorded *unrecorded, void (*on_report)(void *data), void *data)
{
    *unrecorded = (struct ct_unrecorded){ .source.class = &unrecorded_class,
                                          .socket = -1,
                                          .own_uid = ct_real_euid(),
                                          .on_report = on_report,
                                          .data = data };
    uv_mutex_init(&unrecorded->lock);
}

void ct_unrecorded_listen(struct ct_unrecorded *unrecorded, uv_loop_t *loop, const char *dir, uint32_t uid,
                          const char *session)
{
    const int fd = listen_at(dir, uid, session);
    if (fd < 0) {
        ct_log(CT_LOG_unrecorded, "processes that cannot be recorded will not be listed: %s", strerror(-fd));
        return;
    }
    uv_timer_init(loop, &unrecorded->pause);
    uv_poll_init(loop, &unrecorded->poll, fd);
    unrecorded->pause.data = unrecorded->poll.data = unrecorded;
    uv_mutex_lock(&unrecorded->lock);
    unrecorded->socket = fd;
    uv_mutex_unlock(&unrecorded->lock);
    uv_poll_start(&unrecorded->poll, UV_READABLE, on_readable);
}

void ct_unrecorded_finish(struct ct_unrecorded *unrecorded)
{
    if (unrecorded->socket < 0)
        return;
    uv_poll_stop(&unrecorded->poll);
    uv_close((uv_handle_t *)&unrecorded->poll, NULL);
    uv_close((uv_handle_t *)&unrecorded->pause, NULL);
    for (uint32_t i = 0; i < unrecorded->waiting_count; i++)
        close(unrecorded->waiting[i].fd);
    unrecorded->waiting_count = 0;
    close(unrecorded->socket);
    unrecorded->socket = -1;
}
