#include "side_files.h"

#include "own_path.h"
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

const char *const ct_database_parts[CT_DATABASE_PARTS] = { "", "-journal", "-wal", "-shm" };

/* ---- places ---- */

/* Where a path leads (own_path.h). */
struct place {
    int folder;
    const char *name;            /* in the folder */
    char database[NAME_MAX + 1]; /* of a side file: the name of its database; otherwise empty */
};

/* Writes the name of the database to which a side file belongs, or "" if the name is not that of a side
 * file. */
static void find_database(const char *name, char database[NAME_MAX + 1])
{
    const size_t length = strlen(name);
    *database = '\0';
    for (size_t i = 1; i < CT_DATABASE_PARTS; i++) {
        const size_t bytes = strlen(ct_database_parts[i]);
        if (length <= bytes || length - bytes > NAME_MAX ||
            strcmp(name + length - bytes, ct_database_parts[i]) != 0)
            continue;
        memcpy(database, name, length - bytes);
        database[length - bytes] = '\0';
    }
}

/* Finds the path's place, which the caller closes. Returns false and sets errno if there is no such
 * folder. */
static bool find_place(const char *path, struct place *place)
{
    const char *slash = strrchr(path, '/');
    place->name = slash ? slash + 1 : path;
    place->folder = ct_own_path_folder(path, place->name);
    find_database(place->name, place->database);
    if (*place->name == '\0')
        place->name = ".";
    return place->folder >= 0;
}

static void close_place(const struct place *place)
{
    const int error = errno;
    close(place->folder);
    errno = error;
}

/* Returns whether the side file, whose status is given, belongs to the owner of the database or to this
 * user. A file of root's next to another user's database need not have been a side file when root made it.
 * Nor need a file with several names, because users may link files of others that they may write. */
static bool is_trusted(const struct place *place, const struct stat *side)
{
    struct stat database;
    const uint32_t user = ct_real_euid();
    if (!S_ISREG(side->st_mode) || side->st_nlink > 1)
        return false;
    if (user != 0 && side->st_uid == user)
        return true;
    if (ct_real_lstatat(place->folder, place->database, &database) != 0)
        return errno == ENOENT && side->st_uid == user; /* without a database, only a file of that name */
    return S_ISREG(database.st_mode) && database.st_uid == side->st_uid;
}

static bool is_there(const struct place *place)
{
    struct stat status;
    return ct_real_lstatat(place->folder, place->name, &status) == 0 && is_trusted(place, &status);
}

/* ---- SQLite's system calls ---- */

/* As root, gives the new file to the database's owner, as SQLite does. */
static void give_to_owner(int fd, const struct place *place)
{
    struct stat status;
    if (ct_real_euid() == 0 && fstatat(place->folder, place->database, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode) && fchown(fd, status.st_uid, status.st_gid) != 0)
        errno = 0; /* the file stays root's */
}

static int create(const struct place *place, int flags, int mode)
{
    const int fd = openat(place->folder, place->name, flags | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (fd >= 0)
        give_to_owner(fd, place);
    return fd;
}

/* Opens the file, and examines what it has opened, because another user may replace the file at any time. A
 * FIFO would block without O_NONBLOCK, which has no effect on files. */
static int open_side_file(const struct place *place, int flags, int mode)
{
    enum { ATTEMPTS = 100 };
    struct stat status;
    int fd = -1;
    errno = ENOENT;
    for (int i = 0; i < ATTEMPTS && fd < 0; i++) {
        fd = openat(place->folder, place->name,
                    (flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
        if (fd >= 0 || errno != ENOENT || !(flags & O_CREAT))
            break;
        fd = create(place, flags, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    if (fd < 0 || (ct_real_fstat(fd, &status) == 0 && is_trusted(place, &status)))
        return fd;
    close(fd);
    errno = EACCES;
    return -1;
}

static int guarded_open(const char *path, int flags, int mode)
{
    struct place place;
    if (!find_place(path, &place))
        return -1;
    const int fd = *place.database ? open_side_file(&place, flags, mode)
                                   : ct_own_path_openat(place.folder, place.name, flags, (mode_t)mode);
    close_place(&place);
    return fd;
}

static int guarded_stat(const char *path, struct stat *status)
{
    struct place place;
    int result = -1;
    if (!find_place(path, &place))
        return -1;
    if (!*place.database || is_there(&place))
        result = fstatat(place.folder, place.name, status, 0);
    else
        errno = ENOENT;
    close_place(&place);
    return result;
}

static int guarded_unlink(const char *path)
{
    struct place place;
    int result = -1;
    if (!find_place(path, &place))
        return -1;
    if (!*place.database || is_there(&place))
        result = unlinkat(place.folder, place.name, 0);
    else
        errno = ENOENT;
    close_place(&place);
    return result;
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
        { "unlink", (sqlite3_syscall_ptr)guarded_unlink },
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
    struct place place;
    const bool is_found = find_place(path, &place);
    const bool exists = is_found && *place.database && is_there(&place);
    if (is_found)
        close_place(&place);
    return exists;
}

const char *ct_side_file_of_other(const char *database)
{
    char path[PATH_MAX + 16];
    const char *others = NULL;
    const size_t length = strlen(database);
    for (size_t i = 1; i < CT_DATABASE_PARTS && length < PATH_MAX && !others; i++) {
        struct place place;
        struct stat status;
        memcpy(path, database, length);
        strcpy(path + length, ct_database_parts[i]);
        if (!find_place(path, &place))
            return NULL;
        if (ct_real_lstatat(place.folder, place.name, &status) == 0 && !is_trusted(&place, &status))
            others = ct_database_parts[i];
        close_place(&place);
    }
    return others;
}
