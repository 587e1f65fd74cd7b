#include "attach_set.h"

#include "attach_message.h"
#include "gpu_recording.h"
#include "installed.h"
#include "outcome.h"
#include "proc.h"
#include "room.h"
#include "say.h"

#include <limits.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Writes the path of the library that is next to the hook, or "" if there is none. */
static void find_gpu_library(char *path, size_t bytes)
{
    char hook[PATH_MAX], real[PATH_MAX];
    const bool is_found = ct_installed_hook(hook) && realpath(hook, real);
    const int folder = is_found ? (int)(strrchr(real, '/') + 1 - real) : 0;
    if (!is_found || snprintf(path, bytes, "%.*s" CT_GPU_LIBRARY, folder, real) >= (int)bytes)
        *path = '\0';
}

void ct_attach_set_request(struct ct_attach_set *set, const struct ct_session_choice *choice,
                           const struct ct_selecting *selecting)
{
    struct ct_visit *visit = &set->visit;
    const bool usual = strcmp(choice->shm_dir, CT_SHM_DIR) == 0;
    *visit =
        (struct ct_visit){ .version = CT_VISIT_VERSION, .bytes = sizeof(*visit), .request = CT_VISIT_RECORD };
    snprintf(visit->session, sizeof(visit->session), "%s", choice->session);
    snprintf(visit->shm_dir, sizeof(visit->shm_dir), "%s", usual ? "" : choice->shm_dir);
    snprintf(visit->layers, sizeof(visit->layers), "%s", selecting->layers ? selecting->layers : "");
    snprintf(visit->calls, sizeof(visit->calls), "%s", selecting->calls ? selecting->calls : "");
    snprintf(visit->sample, sizeof(visit->sample), "%s", selecting->sample ? selecting->sample : "");
    find_gpu_library(visit->gpu_library, sizeof(visit->gpu_library));
}

/* ---- adding a process ---- */

/* Opens an attachment. Returns NULL after reporting an error. */
static struct ct_attachment *open_one(struct ct_attach_set *set, pid_t pid)
{
    struct ct_attachment *attachment = calloc(1, sizeof(*attachment));
    if (!attachment || !ct_make_room(&set->attachments, set->count, &set->room, sizeof(attachment))) {
        free(attachment);
        ct_fail(0, "%s: out of memory", set->command);
        set->has_failed = true;
        return NULL;
    }
    ct_attachment_open(attachment, set->command, pid, &set->hook);
    attachment->is_inline = set->is_inline;
    return attachment;
}

static void keep(struct ct_attach_set *set, struct ct_attachment *attachment)
{
    set->attachments[set->count++] = attachment; /* open_one() has reserved the room */
}

static void drop(struct ct_attachment *attachment)
{
    ct_attachment_close(attachment);
    free(attachment);
}

bool ct_attach_set_add(struct ct_attach_set *set, pid_t pid)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->attachments[i]->target.pid == pid)
            return true; /* named twice */
    }
    struct ct_attachment *attachment = open_one(set, pid);
    if (!attachment)
        return false;
    if (attachment->target.kind == CT_TARGET_FINE) {
        keep(set, attachment);
        return true;
    }
    ct_attachment_say_why(attachment);
    drop(attachment);
    set->has_failed = true;
    return false;
}

/* ---- all ---- */

/* Notes of a process. */
enum {
    REFUSED = 1, /* the process cannot be attached to, and this has been reported */
    DOUBTED = 2, /* may still be loading the driver: examine again in the next scan */
    RECORDED = 4,
};

static bool is_held(const struct ct_attach_set *set, pid_t pid)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->attachments[i]->target.pid == pid && set->attachments[i]->state < CT_ATTACHMENT_OVER)
            return true;
    }
    return false;
}

/* Checks whether the process shares memory with an attached one. A child of vfork() uses its parent's memory
 * until it calls exec, and must not be attached to. Returns 1 if memory is shared, 0 if not, or -1 if the
 * kernel refuses to compare. */
static int shares_memory(const struct ct_attach_set *set, pid_t pid)
{
    long differs = 1;
    for (size_t i = 0; i < set->count && differs > 0; i++)
        differs = syscall(SYS_kcmp, pid, set->attachments[i]->target.pid, KCMP_VM, 0, 0);
    return differs < 0 ? -1 : differs == 0;
}

/* Marks the process as doubtful, so that the next scan examines it again. Returns false if the process was
 * already marked. */
static bool is_in_doubt(struct ct_process *seen)
{
    const bool is_first = !(seen->note & DOUBTED);
    seen->note |= DOUBTED;
    return is_first;
}

/* Reports why a process cannot be attached to, unless it may still be loading the driver. */
static void refuse(struct ct_process *seen, const struct ct_attachment *attachment, bool may_load)
{
    if (attachment->target.kind == CT_TARGET_NO_DRIVER || seen->note & REFUSED ||
        !ct_proc_has_mapped(seen->pid, CT_DRIVER_IN_PATH) || (may_load && is_in_doubt(seen)))
        return;
    ct_attachment_say_why(attachment);
    seen->note |= REFUSED;
}

static void look_at(struct ct_attach_set *set, struct ct_process *seen, bool may_load)
{
    if (is_held(set, seen->pid)) {
        /* The attachment belongs to the process's previous program. The next step will notice the change. */
        if (seen->change == CT_PROCESS_NEW)
            is_in_doubt(seen);
        return;
    }
    if (seen->pid == getpid() || seen->note & RECORDED)
        return;
    const int shares = shares_memory(set, seen->pid);
    if (shares > 0 || (shares < 0 && is_in_doubt(seen)))
        return;
    struct ct_attachment *attachment = open_one(set, seen->pid);
    if (!attachment)
        return;
    if (attachment->target.kind == CT_TARGET_FINE) {
        keep(set, attachment);
        return;
    }
    refuse(seen, attachment, may_load);
    drop(attachment);
}

void ct_attach_set_scan(struct ct_attach_set *set, enum ct_attach_which which)
{
    const bool is_first = set->processes.count == 0;
    ct_processes_look(&set->processes);
    for (size_t i = 0; which == CT_ATTACH_ALL && i < set->processes.count; i++) {
        struct ct_process *seen = &set->processes.process[i];
        const bool was_doubted = seen->note & DOUBTED;
        if (seen->change != CT_PROCESS_SAME || was_doubted)
            look_at(set, seen, !is_first);
        if (was_doubted)
            seen->note &= ~(unsigned)DOUBTED;
    }
}

/* ---- changes ---- */

/* Removes attachments that have ended or failed. */
static void tidy(struct ct_attach_set *set)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct ct_attachment *attachment = set->attachments[i];
        if (attachment->state < CT_ATTACHMENT_OVER) {
            set->attachments[kept++] = attachment;
            continue;
        }
        set->has_failed |= attachment->state == CT_ATTACHMENT_FAILED;
        if (set->verbose)
            ct_attachment_say(attachment);
        drop(attachment);
    }
    set->count = kept;
}

void ct_attach_set_arm(struct ct_attach_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->attachments[i]->state == CT_ATTACHMENT_KNOWN)
            ct_attachment_arm(set->attachments[i], &set->visit);
    }
    tidy(set);
}

/* Marks the process as recorded. If another command detaches the process, this command does not attach again
 * until the process executes another program. */
static void note_recorded(struct ct_attach_set *set, pid_t pid)
{
    for (size_t i = 0; i < set->processes.count; i++) {
        if (set->processes.process[i].pid == pid)
            set->processes.process[i].note |= RECORDED;
    }
}

void ct_attach_set_step(struct ct_attach_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        struct ct_attachment *attachment = set->attachments[i];
        const enum ct_attachment_state before = attachment->state;
        ct_attachment_step(attachment, set->patience_ns);
        if (attachment->state == before || attachment->state != CT_ATTACHMENT_RECORDING)
            continue;
        if (ct_make_room(&set->recorded, set->recorded_count, &set->recorded_room, sizeof(*set->recorded)))
            set->recorded[set->recorded_count++] = attachment->target;
        note_recorded(set, attachment->target.pid);
        ct_attachment_print_recorded(attachment);
    }
    tidy(set);
}

void ct_attach_set_leave(struct ct_attach_set *set)
{
    const uint64_t until_ns = ct_attachment_deadline();
    for (size_t i = 0; i < set->count; i++) {
        struct ct_attachment *attachment = set->attachments[i];
        if (attachment->state == CT_ATTACHMENT_ARMED || attachment->state == CT_ATTACHMENT_RECORDING)
            ct_attachment_leave(attachment, until_ns);
    }
    tidy(set);
}

void ct_attach_set_tell(const struct ct_attach_set *set, const char *database)
{
    for (size_t i = 0; i < set->recorded_count; i++)
        ct_attach_tell(set->command, &set->recorded[i], database);
}

size_t ct_attach_set_in(const struct ct_attach_set *set, enum ct_attachment_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < set->count; i++)
        n += set->attachments[i]->state == state;
    return n;
}

void ct_attach_set_finish(struct ct_attach_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        drop(set->attachments[i]);
    free(set->attachments);
    ct_processes_free(&set->processes);
    free(set->recorded);
    ct_library_free(&set->hook);
    *set = (struct ct_attach_set){ 0 };
}
