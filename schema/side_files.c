#include "side_files.h"

#include "real_user.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const suffixes[] = { "-wal", "-shm", "-journal" };
enum { SUFFIXES = sizeof(suffixes) / sizeof(suffixes[0]) };

/* Writes the path of the database to which a side file belongs. Returns false if the path is not that of a
 * side file. */
static bool find_database(const char *path, char database[PATH_MAX])
{
    const size_t length = strlen(path);
    for (size_t i = 0; i < SUFFIXES; i++) {
        const size_t bytes = strlen(suffixes[i]);
        if (length <= bytes || length - bytes >= PATH_MAX || strcmp(path + length - bytes, suffixes[i]) != 0)
            continue;
        memcpy(database, path, length - bytes);
        database[length - bytes] = '\0';
        return true;
    }
    return false;
}

/* Returns whether the side file, whose status is given, belongs to the owner of the database or to this
 * user. A file of root's next to another user's database need not have been a side file when root made it.
 * Nor need a file with several names, because users may link files of others that they may write. */
static bool is_trusted(const char *database, const struct stat *side)
{
    struct stat status;
    const uint32_t user = ct_real_euid();
    if (!S_ISREG(side->st_mode) || side->st_nlink > 1)
        return false;
    if (user != 0 && side->st_uid == user)
        return true;
    const int fd = open(database, O_PATH | O_CLOEXEC);
    if (fd < 0) /* without a database, it is only a file of that name */
        return errno == ENOENT && side->st_uid == user;
    const bool is_owners = ct_real_fstat(fd, &status) == 0 && status.st_uid == side->st_uid;
    close(fd);
    return is_owners;
}

static bool is_there(const char *path, const char *database)
{
    struct stat status;
    return ct_real_lstat(path, &status) == 0 && is_trusted(database, &status);
}

/* ---- SQLite's system calls ---- */

/* As root, gives the new file to the database's owner, as SQLite does. */
static void give_to_owner(int fd, const char *database)
{
    struct stat status;
    if (ct_real_euid() == 0 && stat(database, &status) == 0 && fchown(fd, status.st_uid, status.st_gid) != 0)
        errno = 0; /* the file stays root's */
}

static int create(const char *path, const char *database, int flags, int mode)
{
    const int fd = open(path, flags | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (fd >= 0)
        give_to_owner(fd, database);
    return fd;
}

/* Opens the file, and examines what it has opened, because another user may replace the file at any time. A
 * FIFO would block without O_NONBLOCK, which has no effect on files. */
static int open_side_file(const char *path, const char *database, int flags, int mode)
{
    enum { ATTEMPTS = 100 };
    struct stat status;
    int fd = -1;
    errno = ENOENT;
    for (int i = 0; i < ATTEMPTS && fd < 0; i++) {
        fd = open(path, (flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
        if (fd >= 0 || errno != ENOENT || !(flags & O_CREAT))
            break;
        fd = create(path, database, flags, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    if (fd < 0 || (ct_real_fstat(fd, &status) == 0 && is_trusted(database, &status)))
        return fd;
    close(fd);
    errno = EACCES;
    return -1;
}

static int guarded_open(const char *path, int flags, int mode)
{
    char database[PATH_MAX];
    return find_database(path, database) ? open_side_file(path, database, flags, mode)
                                         : open(path, flags, mode);
}

static int guarded_stat(const char *path, struct stat *status)
{
    char database[PATH_MAX];
    if (!find_database(path, database) || is_there(path, database))
        return stat(path, status);
    errno = ENOENT;
    return -1;
}

/* SQLite calls fchown() only as root, for side files, whether or not it has created them. */
static int keep_owner(int fd, uid_t owner, gid_t group)
{
    (void)fd, (void)owner, (void)group;
    return 0;
}

static void set_calls(void)
{
    static const struct {
        const char *name;
        sqlite3_syscall_ptr call;
    } calls[] = {
        { "open", (sqlite3_syscall_ptr)guarded_open },
        { "stat", (sqlite3_syscall_ptr)guarded_stat },
        { "fchown", (sqlite3_syscall_ptr)keep_owner },
    };
    sqlite3_vfs *files = sqlite3_vfs_find(NULL);
    for (size_t i = 0; files && files->iVersion >= 3 && i < sizeof(calls) / sizeof(calls[0]); i++)
        files->xSetSystemCall(files, calls[i].name, calls[i].call);
}

void ct_side_files_guard(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_calls);
}

bool ct_side_file_exists(const char *path)
{
    char database[PATH_MAX];
    return find_database(path, database) && is_there(path, database);
}

const char *ct_side_file_of_other(const char *database)
{
    char path[PATH_MAX + 16];
    struct stat status;
    const size_t length = strlen(database);
    for (size_t i = 0; i < SUFFIXES && length < PATH_MAX; i++) {
        memcpy(path, database, length);
        strcpy(path + length, suffixes[i]);
        if (ct_real_lstat(path, &status) == 0 && !is_trusted(database, &status))
            return suffixes[i];
    }
    return NULL;
}
