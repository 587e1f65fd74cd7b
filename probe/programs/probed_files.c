#include "probed_files.h"

#include "clock.h"
#include "code_check.h"
#include "proc.h"
#include "room.h"
#include "say.h"
#include "targets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ct_probed_file {
    struct ct_probed_file *next;
    dev_t device;
    ino_t inode;
    pid_t pid;              /* the process that is probed; 0: all processes */
    struct ct_links *links; /* NULL: attaching has failed */
    bool is_due;            /* to be attached to when a process that maps it is looked at */
    int error;              /* of the last attempt: see may_succeed_later() */
    pid_t culprit;          /* the process that was printed with such an error */
    uint64_t blocked_ns;    /* of a file in all processes: since when a process is in the way; 0: none is */
    bool is_split; /* and whether it has been for so long that other processes are probed one by one */
};

/* How long a process may keep the probe from attaching to a file in all processes. */
#define SPLIT_NS UINT64_C(2000000000)

static struct ct_probed_file *find(const struct ct_probed_files *files, const struct ct_mapped_driver *image,
                                   pid_t pid)
{
    struct ct_probed_file *file = files->first;
    while (file && (file->inode != image->inode || file->device != image->device || file->pid != pid))
        file = file->next;
    return file;
}

/* Returns NULL if out of memory. */
static struct ct_probed_file *get(struct ct_probed_files *files, const struct ct_mapped_driver *image,
                                  pid_t pid)
{
    struct ct_probed_file *file = find(files, image, pid);
    if (file || !(file = calloc(1, sizeof(*file))))
        return file;
    *file = (struct ct_probed_file){
        .next = files->first, .device = image->device, .inode = image->inode, .pid = pid, .is_due = true
    };
    files->first = file;
    return file;
}

static int attach_to(struct ct_probed_files *files, const struct ct_mapped_driver *image,
                     struct ct_probed_file *file, pid_t *culprit)
{
    struct ct_targets targets;
    struct ct_code_check check;
    const uint64_t begun_ns = ct_monotonic_ns();
    int error = ct_targets_find(&targets, image->path, files->selection, files->functions);
    if (error)
        return error;
    for (uint32_t i = 0; i < targets.count; i++) {
        const uint32_t number = (uint32_t)targets.number[i];
        ct_programs_set_shape(files->programs, number, ct_functions_shape(files->functions, number));
    }
    error = ct_code_check_begin(&check, image, &targets, file->pid, culprit);
    if (!error)
        error = ct_programs_attach(files->programs, image->path, &targets, file->pid, &file->links);
    ct_code_check_end(&check);
    if (!error && targets.left_out > 0)
        fprintf(stderr,
                "cudatrace-probe: %u functions of %s are not probed: the probe has no numbers left for "
                "functions that are not part of the driver's interface\n",
                targets.left_out, image->name);
    if (!error && files->is_verbose)
        ct_say("probe: %u functions of %s in %.1f ms", targets.count, image->name,
               (double)(ct_monotonic_ns() - begun_ns) / 1e6);
    files->functions_probed += error ? 0 : targets.count;
    ct_targets_free(&targets);
    return error;
}

/* Opens the file once for all steps. A process could otherwise exchange the file after the functions were
 * found, and the kernel would write breakpoints into the middle of another file's instructions. */
static int attach(struct ct_probed_files *files, const struct ct_mapped_driver *image,
                  struct ct_probed_file *file, pid_t *culprit)
{
    struct ct_mapped_driver opened;
    const int fd = ct_mapped_driver_open(&opened, image->path);
    if (fd < 0)
        return fd;
    strcpy(opened.name, image->name);
    const bool is_same = opened.inode == image->inode && opened.device == image->device;
    const int error = is_same ? attach_to(files, &opened, file, culprit) : -ESTALE;
    close(fd);
    return error;
}

/* Returns a phrase about how a process prevents the probe from attaching to the file until a later attempt,
 * or NULL. */
static const char *obstacle(int error)
{
    if (error == -EBUSY)
        return "is being attached to or detached by";
    return error == -ETXTBSY ? "has other code in memory than the file, from a debugger or `cudatrace attach "
                               "--inline`, and probes there would crash it"
                             : NULL;
}

/* Returns whether a later attempt may succeed: a process was in the way, or the process through whose mapping
 * the file was found has ended or has exchanged the mapping. */
static bool may_succeed_later(int error)
{
    return obstacle(error) || error == -ENOENT || error == -ESRCH || error == -ESTALE;
}

static void print_obstacle(const struct ct_probed_file *file, const char *name, pid_t culprit)
{
    char holder[CT_HOLDER_BYTES] = "";
    const bool is_busy = file->error == -EBUSY;
    if (is_busy)
        ct_proc_describe_holder(culprit, holder);
    fprintf(stderr, "cudatrace-probe: cannot attach to %s yet: process %d %s%s%s\n", name, (int)culprit,
            obstacle(file->error), is_busy ? " " : "", holder);
}

/* Returns whether the kernel cannot limit links to the process, because its first thread has exited. The
 * kernel compares a process's memory with the memory of the first thread, which then has none. */
static bool is_leaderless(pid_t pid)
{
    struct ct_proc_stat stat;
    return ct_proc_stat(pid, &stat) == 0 && stat.first_ended && !stat.ended;
}

/* Closes the links to the file that are limited to one process. */
static void close_narrow(struct ct_probed_files *files, const struct ct_mapped_driver *image)
{
    for (struct ct_probed_file *file = files->first; file; file = file->next) {
        if (file->pid == 0 || file->inode != image->inode || file->device != image->device)
            continue;
        ct_links_close(file->links);
        file->links = NULL;
    }
}

/* Probes other processes one by one if a process stays in the way. The process's user could otherwise prevent
 * the probe from recording other users' processes. */
static void split(struct ct_probed_file *file, const struct ct_mapped_driver *image)
{
    const uint64_t now_ns = ct_monotonic_ns();
    if (file->blocked_ns == 0)
        file->blocked_ns = now_ns;
    if (file->is_split || now_ns - file->blocked_ns < SPLIT_NS)
        return;
    file->is_split = true;
    fprintf(stderr,
            "cudatrace-probe: attaching to %s in every process except %d: the first calls of new processes "
            "may be missed\n",
            image->name, (int)file->culprit);
}

/* Notes the success of an attempt, or why it must be repeated. */
static void note_attempt(struct ct_probed_files *files, const struct ct_mapped_driver *image,
                         struct ct_probed_file *file, pid_t pid)
{
    const bool is_wide = file->pid == 0;
    if (is_wide && files->is_for_all && obstacle(file->error))
        split(file, image);
    if (!is_wide || file->error)
        return;
    file->blocked_ns = 0;
    file->is_split = false;
    close_narrow(files, image);
    if (!files->is_for_all)
        fprintf(stderr,
                "cudatrace-probe: process %d: its first thread has exited, so calls to %s take longer in "
                "other processes, too\n",
                (int)pid, image->name);
}

static void attempt(struct ct_probed_files *files, const struct ct_mapped_driver *image,
                    struct ct_probed_file *file, pid_t pid)
{
    pid_t culprit = 0;
    file->error = attach(files, image, file, &culprit);
    if (file->error == -EINTR)
        return;
    file->is_due = false;
    files->is_announced &= file->error != -EBUSY;
    if (file->error && !may_succeed_later(file->error))
        ct_say("cudatrace-probe: process %d: cannot attach to %s: %s", pid, image->name,
               file->error == -ENODATA ? "it exports no driver function that --calls includes"
                                       : strerror(-file->error));
    if (obstacle(file->error) && culprit != file->culprit)
        print_obstacle(file, image->name, culprit);
    file->culprit = culprit;
    note_attempt(files, image, file, pid);
}

static void attach_in(struct ct_probed_files *files, const struct ct_mapped_driver *image, pid_t scope,
                      pid_t pid)
{
    struct ct_probed_file *file = get(files, image, scope);
    if (file && file->is_due)
        attempt(files, image, file, pid);
}

void ct_probed_files_attach(struct ct_probed_files *files, const struct ct_mapped_driver *image, pid_t pid)
{
    const bool is_wide = files->is_for_all || is_leaderless(pid);
    attach_in(files, image, is_wide ? 0 : pid, pid);
    if (!is_wide && is_leaderless(pid)) /* the thread may have exited before the links were made */
        attach_in(files, image, 0, pid);
    const struct ct_probed_file *file = is_wide ? find(files, image, 0) : NULL;
    if (file && file->is_split && pid != 0 && pid != file->culprit && !is_leaderless(pid))
        attach_in(files, image, pid, pid);
}

void ct_probed_files_announce(struct ct_probed_files *files)
{
    bool is_busy = false;
    for (const struct ct_probed_file *file = files->first; file; file = file->next)
        is_busy |= file->error == -EBUSY && !file->is_split && (file->pid == 0 || !files->is_for_all);
    if (!files->is_announced && !is_busy)
        fprintf(stderr, "probe: %zu functions are probed\n", files->functions_probed);
    files->is_announced |= !is_busy;
}

bool ct_probed_files_know(const struct ct_probed_files *files, const struct ct_mapped_driver *image)
{
    return find(files, image, 0) != NULL;
}

/* Forgets processes that have ended, whose ids may be reused. */
static void forget_ended(struct ct_probed_files *files)
{
    struct ct_proc_stat stat;
    for (struct ct_probed_file **link = &files->first, *file; (file = *link) != NULL;) {
        if (file->pid == 0 || ct_proc_stat(file->pid, &stat) != -ESRCH) {
            link = &file->next;
            continue;
        }
        *link = file->next;
        ct_links_close(file->links);
        free(file);
    }
}

bool ct_probed_files_retry(struct ct_probed_files *files)
{
    bool is_blocked = false;
    forget_ended(files);
    for (struct ct_probed_file *file = files->first; file; file = file->next) {
        if (!may_succeed_later(file->error))
            continue;
        is_blocked = file->is_due = true;
        file->error = 0;
    }
    return is_blocked;
}

void ct_probed_files_detach(struct ct_probed_files *files)
{
    struct ct_links **links = NULL;
    size_t count = 0, room = 0;
    for (struct ct_probed_file *file = files->first, *next; file; file = next) {
        next = file->next;
        if (ct_make_room(&links, count, &room, sizeof(*links)))
            links[count++] = file->links;
        else
            ct_links_close(file->links);
        free(file);
    }
    ct_links_close_all(links, count);
    free(links);
    files->first = NULL;
}
