#include "process_tracking.h"

#include "log.h"
#include "session.h"
#include "shm_drain.h"
#include "shm_segment.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *on_process(struct ct_shm_process *process, void *data)
{
    struct ct_tracking *tracking = data;
    if (process->who.seen_pid == getpid())
        return "it names the daemon as its process";
    /* Do not check a segment that the hook has left: no process has it mapped any more, and the process that
     * created it may already have created the next one. Always check a probe's segment, which no process has
     * mapped, because it must not claim an image that the hook records. A companion's segment needs no check,
     * because it adds only rows that the hook's segment does not have. */
    if ((ct_shm_is_probed(process) || !ct_shm_is_left(process)) && !ct_shm_is_companion(process) &&
        ct_followed_disproves(&tracking->followed, &process->who))
        return "the process that it names already has another segment";
    if (ct_followed_has_many(&tracking->followed, &process->who))
        return "the process that it names already has 64 segments, the maximum";
    char name[CT_LOG_NAME_BYTES];
    ct_log(CT_LOG_process_found, "process %d is traced: %s", process->who.pid,
           ct_log_quote(name, process->facts.exe));
    if (!ct_shm_is_probed(process)) /* a probed image never replaces one that the hook records */
        ct_followed_end_earlier_execs(&tracking->followed, &process->who);
    ct_followed_add(&tracking->followed, &process->who);
    ct_gpu_request_add(&tracking->gpu_targets, process);
    ct_shm_adopt(&tracking->shm, process);
    tracking->on_found(tracking->data);
    return NULL;
}

static void on_refused(int32_t pid, uint32_t uid, const char *reason, void *data)
{
    struct ct_tracking *tracking = data;
    ct_unrecorded_refused(&tracking->unrecorded, pid, uid, reason);
}

static void close_process(struct ct_tracking *tracking, struct ct_shm_process *process)
{
    ct_followed_remove(&tracking->followed, &process->who);
    ct_gpu_request_remove(&tracking->gpu_targets, process);
    char name[CT_LOG_NAME_BYTES];
    ct_log_quote(name, process->facts.exe);
    tracking->detached += process->broken != NULL;
    if (process->broken && process->who.user)
        ct_user_complain(process->who.user, process->broken, process->path);
    else if (process->broken)
        ct_log(CT_LOG_process_let_go, "stopped tracing process %d (%s): segment %s: %s", process->who.pid,
               name, process->path, process->broken);
    else
        ct_log(CT_LOG_process_ended, "process %d is no longer traced: %s", process->who.pid, name);
    char path[CT_NAME_BYTES];
    memcpy(path, process->path, sizeof(path));
    struct ct_user *user = process->who.user;
    ct_shm_close(process, true);
    ct_watch_forget(tracking->watch, path, user);
}

void ct_tracking_init(struct ct_tracking *tracking, uv_loop_t *loop, const char *dir,
                      struct ct_control *control, void (*on_found)(void *data), void (*on_end)(void *data),
                      void *data)
{
    *tracking = (struct ct_tracking){ .gpu_targets.control = control, .on_found = on_found, .data = data };
    ct_shm_init(&tracking->shm, dir, control);
    tracking->shm.orphans = true;
    tracking->shm.source.next = &tracking->unrecorded.source;
    ct_unrecorded_init(&tracking->unrecorded, on_found, data);
    ct_followed_init(&tracking->followed, loop, on_end, data);
}

int ct_tracking_start(struct ct_tracking *tracking, const struct ct_session *session, bool system)
{
    ct_unrecorded_listen(&tracking->unrecorded, tracking->followed.loop, tracking->shm.dir, session->uid,
                         session->name);
    return ct_watch_create(tracking->followed.loop, tracking->shm.dir, session->uid, session->name, system,
                           on_process, on_refused, tracking, &tracking->watch);
}

void ct_tracking_look(struct ct_tracking *tracking)
{
    const uint64_t now_ns = ct_monotonic_ns();
    const uint32_t segments = atomic_load_explicit(&tracking->shm.control->segments, memory_order_acquire);
    if (!ct_watch_scan(tracking->watch))
        return; /* the directory could not be read; the next scan tries again */
    ct_shm_adopted(&tracking->shm, segments, now_ns);
    tracking->segments_seen = segments;
}

void ct_tracking_look_for_counted(struct ct_tracking *tracking)
{
    if (atomic_load_explicit(&tracking->shm.control->segments, memory_order_acquire) !=
        tracking->segments_seen)
        ct_tracking_look(tracking);
}

void ct_tracking_look_around(struct ct_tracking *tracking)
{
    ct_tracking_look(tracking);
    ct_followed_look(&tracking->followed);
}

bool ct_tracking_close_gone(struct ct_tracking *tracking)
{
    struct ct_shm_process *const gone = ct_shm_take_gone(&tracking->shm);
    for (struct ct_shm_process *p = gone, *next; p; p = next) {
        next = p->next;
        close_process(tracking, p);
    }
    return gone != NULL;
}

/* The traced processes that keep running when the daemon exits. The probes that trace them are not
 * included. */
struct left {
    uint32_t count;
    int32_t pids[CT_LEFT_NAMED_MAX];
};

static void note_left(struct left *left, const struct ct_shm_process *process)
{
    if (process->broken || ct_shm_is_of_machine(process) || !ct_shm_runs_on(process))
        return;
    const uint32_t named = left->count < CT_LEFT_NAMED_MAX ? left->count : CT_LEFT_NAMED_MAX;
    for (uint32_t i = 0; i < named; i++) {
        if (left->pids[i] == process->who.seen_pid)
            return; /* already counted: its hook left one segment and has another */
    }
    if (named < CT_LEFT_NAMED_MAX)
        left->pids[named] = process->who.seen_pid;
    left->count++;
}

static void find_left(const struct ct_shm *shm, char text[CT_LEFT_BYTES])
{
    struct left left = { 0 };
    for (const struct ct_shm_process *p = shm->processes; p; p = p->next)
        note_left(&left, p);
    int n = snprintf(text, CT_LEFT_BYTES, "%u", left.count);
    for (uint32_t i = 0; i < left.count && i < CT_LEFT_NAMED_MAX; i++)
        n += snprintf(text + n, (size_t)(CT_LEFT_BYTES - n), " %d", left.pids[i]);
}

void ct_tracking_end(struct ct_tracking *tracking, struct ct_ledger *ledger, bool cut_short)
{
    struct ct_shm *shm = &tracking->shm;
    ct_unrecorded_finish(&tracking->unrecorded);
    shm->processes = ct_shm_finish(shm);
    find_left(shm, tracking->left);
    const uint64_t now_ns = ct_monotonic_ns();
    if (ledger)
        ct_ledger_end_orphans(ledger, now_ns, now_ns, ct_shm_going_at_end, shm, NULL);
    for (struct ct_shm_process *p = shm->processes, *next; p; p = next) {
        next = p->next;
        /* Detach the hook, in case no batch has done so. */
        ct_shm_detach(p);
        const bool was_read = p->account.generation != 0 && !cut_short;
        if (!ledger || (!was_read && ct_shm_has_backlog(p)))
            p->path[0] = '\0';
        close_process(tracking, p);
    }
}

void ct_tracking_finish(struct ct_tracking *tracking)
{
    ct_watch_destroy(tracking->watch);
}
