#include "output.h"

#include "output_target.h"
#include "temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

struct ct_output {
    struct ct_output_target target;
    int fd;    /* the target itself, or the temporary file next to it */
    int stage; /* a staging file that is filled and then copied to `fd`; -1 if `fd` is filled directly */
    const char *stage_folder;
    bool in_place;       /* `fd` is an existing regular file, which is truncated before it is filled */
    FILE *stream;        /* writes to the file being filled; NULL if the caller opens the file by name */
    int error;           /* the stream's first error as -errno, because errno may be overwritten later */
    char path[PATH_MAX]; /* the path of a file that the caller opens by name */
};

/* ---- opening ---- */

/* Opens the file that ct_output_target_find() has found. Returns -ESTALE if another file has replaced it
 * since. */
static int open_existing(const struct ct_output_target *target, int flags)
{
    return ct_output_target_open_found(target, flags | O_WRONLY | O_NOCTTY, 0);
}

/* Copies the owner, group and mode of the old file to the new one. Returns false if the old file has an
 * access control list, or an owner or group that we may not set. */
static bool is_made_alike(int fd, const struct stat *old, int old_fd)
{
    struct stat new;
    if (fstat(fd, &new) != 0 || fgetxattr(old_fd, "system.posix_acl_access", NULL, 0) >= 0)
        return false;
    const bool is_ours = new.st_uid == old->st_uid &&new.st_gid == old->st_gid;
    return (is_ours || fchown(fd, old->st_uid, old->st_gid) == 0) && fchmod(fd, old->st_mode & 0777) == 0;
}

/* Returns whether the error means that no new file can be created in the folder. */
static bool is_refusal(int error)
{
    return error == -EACCES || error == -EPERM || error == -EROFS || error == -EXDEV;
}

/* Opens a regular file for output. An existing file is replaced only if it is writable, and is overwritten in
 * place if it cannot be replaced. */
static int open_regular(struct ct_output *output)
{
    const struct ct_output_target *target = &output->target;
    const int old = target->exists ? open_existing(target, O_NONBLOCK) : -1;
    if (target->exists && old < 0)
        return old;
    output->fd = target->is_magic ? -EXDEV : ct_temporary_make(CT_TEMPORARY_BESIDE, target->folder);
    /* After any other error, such as a full disk, do not overwrite the old file, which would destroy its
     * content. */
    if (old < 0 ||
        (output->fd < 0 ? !is_refusal(output->fd) : is_made_alike(output->fd, &target->status, old))) {
        if (old >= 0)
            close(old);
        return output->fd < 0 ? output->fd : 0;
    }
    if (output->fd >= 0)
        close(output->fd);
    ct_temporary_remove(CT_TEMPORARY_BESIDE);
    output->fd = old;
    output->in_place = true;
    return 0;
}

/* Opens a FIFO, waiting up to three seconds for a reader to open it. */
static int open_fifo(const struct ct_output_target *target)
{
    enum { TRIES = 60, PAUSE_NS = 50000000 };
    int fd = open_existing(target, O_NONBLOCK);
    for (int i = 0; fd == -ENXIO && i < TRIES; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
        fd = open_existing(target, O_NONBLOCK);
    }
    if (fd >= 0)
        fcntl(fd, F_SETFL, 0); /* make writes block while the reader is busy */
    return fd;
}

static int open_descriptor(int descriptor)
{
    const int flags = fcntl(descriptor, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY)
        return -EBADF;
    const int fd = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    return fd < 0 ? -errno : fd;
}

/* Opens the target in the way its file type requires. Returns 0 or -errno, and sets *why if a sentence
 * explains the error better. */
static int open_target(struct ct_output *output, const char **why)
{
    const struct ct_output_target *target = &output->target;
    if (target->descriptor < 0 && !target->exists)
        return open_regular(output);
    switch (target->descriptor >= 0 ? 0 : target->status.st_mode & S_IFMT) {
    case 0:
        output->fd = open_descriptor(target->descriptor);
        break;
    case S_IFREG:
        return open_regular(output);
    case S_IFDIR:
        *why = "it is a directory";
        return -EISDIR;
    case S_IFSOCK:
        *why = "it is a socket";
        return -ENXIO;
    case S_IFIFO:
        output->fd = open_fifo(target);
        *why = output->fd == -ENXIO ? "it is a FIFO without a reader" : NULL;
        break;
    default:
        output->fd = open_existing(target, 0);
    }
    return output->fd < 0 ? output->fd : 0;
}

/* Creates a staging file in $TMPDIR, whose content is copied later. Removes the file's name at once, unless
 * the caller opens the file by name. */
static int make_stage(struct ct_output *output, bool by_name)
{
    const char *const folders[] = { secure_getenv("TMPDIR"), "/var/tmp", "/tmp" };
    output->stage = -ENOENT;
    for (size_t i = 0; output->stage < 0 && i < sizeof(folders) / sizeof(folders[0]); i++) {
        const int folder =
            folders[i] && *folders[i] ? open(folders[i], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
        if (folder < 0)
            continue;
        output->stage = ct_temporary_make(CT_TEMPORARY_STAGE, folder);
        output->stage_folder = folders[i];
        close(folder);
    }
    if (output->stage < 0)
        return output->stage;
    if (by_name && !ct_temporary_path(CT_TEMPORARY_STAGE, output->path))
        return -ENAMETOOLONG;
    if (!by_name)
        ct_temporary_remove(CT_TEMPORARY_STAGE);
    return 0;
}

/* Writes all bytes, waiting if another process has made the pipe or terminal non-blocking. */
static int write_whole(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        const ssize_t written = write(fd, bytes, count);
        if (written < 0 && errno == EAGAIN)
            poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
        else if (written < 0 && errno != EINTR)
            return -errno;
        bytes += written > 0 ? written : 0;
        count -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

static ssize_t write_to(void *data, const char *bytes, size_t count)
{
    struct ct_output *output = data;
    const int error = write_whole(output->stage >= 0 ? output->stage : output->fd, bytes, count);
    if (error && !output->error)
        output->error = error;
    return error ? 0 : (ssize_t)count;
}

/* Returns whether the folder keeps other users from replacing our file. */
static bool is_safe(const struct stat *folder)
{
    return (folder->st_uid == 0 || folder->st_uid == geteuid()) &&
           (!(folder->st_mode & (S_IWGRP | S_IWOTH)) || (folder->st_mode & S_ISVTX));
}

/* Opens the file to be filled. `by_name` is for SQLite, which opens files by name instead of by
 * descriptor. */
static int open_content(struct ct_output *output, bool by_name)
{
    const bool fill_beside = by_name && ct_temporary_exists(CT_TEMPORARY_BESIDE) &&
                             is_safe(&output->target.around) &&
                             ct_temporary_path(CT_TEMPORARY_BESIDE, output->path);
    const int error = output->in_place || (by_name && !fill_beside) ? make_stage(output, by_name) : 0;
    if (error || by_name)
        return error;
    output->stream = fopencookie(output, "w", (cookie_io_functions_t){ .write = write_to });
    return output->stream ? 0 : -ENOMEM;
}

struct ct_output *ct_output_open(const char *path, bool by_name, const char **why)
{
    struct ct_output *output = calloc(1, sizeof(*output));
    *why = NULL;
    if (!output) {
        *why = strerror(ENOMEM);
        return NULL;
    }
    *output = (struct ct_output){ .fd = -1, .stage = -1 };
    int error = 0;
    if (strcmp(path, "-") == 0)
        output->target = (struct ct_output_target){ .folder = -1, .descriptor = STDOUT_FILENO };
    else
        error = ct_output_target_find(path, &output->target, why);
    if (error == 0)
        error = open_target(output, why);
    if (error == 0)
        error = open_content(output, by_name);
    if (error == 0)
        return output;
    if (error == -ESTALE)
        *why = "another program has replaced it";
    ct_output_discard(output);
    *why = *why ? *why : strerror(-error);
    return NULL;
}

FILE *ct_output_stream(const struct ct_output *output)
{
    return output->stream;
}

const char *ct_output_file(const struct ct_output *output)
{
    return output->stream ? NULL : output->path;
}

const char *ct_output_stage(const struct ct_output *output)
{
    return output->stage >= 0 ? output->stage_folder : NULL;
}

void ct_output_is_open(void)
{
    ct_temporary_remove(CT_TEMPORARY_STAGE);
}

/* ---- finishing ---- */

/* Copies a whole file to the current position of another file. */
static int copy(int from, int to)
{
    static char buffer[1 << 16];
    off_t at = 0;
    for (ssize_t got; (got = pread(from, buffer, sizeof(buffer), at)) != 0; at += got) {
        if (got < 0)
            return -errno;
        const int error = write_whole(to, buffer, (size_t)got);
        if (error)
            return error;
    }
    return 0;
}

static int copy_over(int from, int to)
{
    return ftruncate(to, 0) == 0 ? copy(from, to) : -errno;
}

/* If the file cannot be replaced after all, for example because it is a mount point, write it in place. */
static int put_in_place(struct ct_output *output)
{
    const struct ct_output_target *target = &output->target;
    struct stat now;
    const bool is_there = fstatat(target->folder, target->name, &now, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && !S_ISREG(now.st_mode))
        return -ESTALE;
    int error = ct_temporary_rename(CT_TEMPORARY_BESIDE, target->name);
    const int to = error && target->exists ? open_existing(target, O_NONBLOCK) : -1;
    if (to >= 0) {
        error = copy_over(output->fd, to);
        close(to);
    }
    return error;
}

int ct_output_finish(struct ct_output *output)
{
    if (output->stream && fclose(output->stream) != 0 && !output->error)
        output->error = -EIO;
    output->stream = NULL;
    int error = output->error;
    if (!error && output->stage >= 0)
        error = (output->in_place ? copy_over : copy)(output->stage, output->fd);
    if (!error && ct_temporary_exists(CT_TEMPORARY_BESIDE))
        error = put_in_place(output);
    if (output->fd >= 0 && close(output->fd) != 0 && !error)
        error = -errno;
    output->fd = -1;
    ct_output_discard(output);
    return error;
}

void ct_output_discard(struct ct_output *output)
{
    if (output->stream)
        fclose(output->stream);
    if (output->fd >= 0)
        close(output->fd);
    if (output->stage >= 0)
        close(output->stage);
    ct_temporary_remove(CT_TEMPORARY_BESIDE);
    ct_temporary_remove(CT_TEMPORARY_STAGE);
    ct_output_target_leave(&output->target);
    free(output);
}
