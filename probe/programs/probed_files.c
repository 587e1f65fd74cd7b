#include "probed_files.h"

#include "clock.h"
#include "code_check.h"
#include "proc.h"
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
};

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
    if (!error && files->is_verbose)
        fprintf(stderr, "probe: %u functions of %s in %.1f ms\n", targets.count, image->name,
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

/* Attaches to the file in all processes if its process's first thread has exited. The kernel compares the
 * memory of a process with the memory of the first thread, which then has none, and would set no breakpoints.
 * The BPF programs ignore the other processes. */
static pid_t scope_of(const struct ct_probed_files *files, pid_t pid)
{
    struct ct_proc_stat stat;
    const bool is_wide =
        files->is_for_all || (ct_proc_stat(pid, &stat) == 0 && stat.first_ended && !stat.ended);
    return is_wide ? 0 : pid;
}

/* Closes the links of a process whose first thread has exited. They do not reach what is mapped later. */
static void close_narrow(struct ct_probed_files *files, const struct ct_mapped_driver *image, pid_t pid)
{
    struct ct_probed_file *narrow = find(files, image, pid);
    if (narrow) {
        ct_links_close(narrow->links);
        narrow->links = NULL;
    }
    fprintf(stderr,
            "cudatrace-probe: process %d: its first thread has exited, so calls to %s take longer in other "
            "processes, too\n",
            (int)pid, image->name);
}

void ct_probed_files_attach(struct ct_probed_files *files, const struct ct_mapped_driver *image, pid_t pid)
{
    const pid_t scope = scope_of(files, pid);
    struct ct_probed_file *file = get(files, image, scope);
    if (!file || !file->is_due)
        return;
    pid_t culprit = 0;
    file->error = attach(files, image, file, &culprit);
    file->is_due = false;
    files->is_announced &= file->error != -EBUSY;
    if (file->error && !may_succeed_later(file->error))
        fprintf(stderr, "cudatrace-probe: process %d: cannot attach to %s: %s\n", pid, image->name,
                file->error == -ENODATA ? "it exports no driver function that --calls includes"
                                        : strerror(-file->error));
    if (obstacle(file->error) && culprit != file->culprit)
        print_obstacle(file, image->name, culprit);
    file->culprit = culprit;
    if (!files->is_for_all && scope == 0 && !file->error)
        close_narrow(files, image, pid);
    else if (scope != scope_of(files, pid)) /* the thread may have exited before the links were made */
        ct_probed_files_attach(files, image, pid);
}

void ct_probed_files_announce(struct ct_probed_files *files)
{
    bool is_busy = false;
    for (const struct ct_probed_file *file = files->first; file; file = file->next)
        is_busy |= file->error == -EBUSY;
    if (!files->is_announced && !is_busy)
        fprintf(stderr, "probe: %zu functions are probed\n", files->functions_probed);
    files->is_announced |= !is_busy;
}

bool ct_probed_files_know(const struct ct_probed_files *files, const struct ct_mapped_driver *image)
{
    return find(files, image, 0) != NULL;
}

bool ct_probed_files_retry(struct ct_probed_files *files)
{
    bool is_blocked = false;
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
    for (struct ct_probed_file *file = files->first, *next; file; file = next) {
        next = file->next;
        ct_links_close(file->links);
        free(file);
    }
    files->first = NULL;
}
