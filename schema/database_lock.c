#include "database_lock.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

/* The bytes that SQLite locks: https://www.sqlite.org/fileformat.html, "The Lock-Byte Page", and
 * https://www.sqlite.org/walformat.html, "WAL Locks". */
enum {
    PENDING = 0x40000000,
    RESERVED,
    SHARED_FIRST,
    SHARED_LAST = SHARED_FIRST + 509,
    LOG_WRITE = 120,
    LOG_RECOVER = 122,
};

/* As long as a connection with a write-ahead log is open, it holds a shared lock on the database, which keeps
 * no other connection waiting. */
static pid_t find(const struct stat *database, const struct stat *log_index)
{
    struct ct_lock_query queries[] = {
        { .inode = log_index ? log_index->st_ino : 0, .first = LOG_WRITE, .last = LOG_RECOVER },
        { .inode = database->st_ino, .first = PENDING, .last = RESERVED },
        { .inode = database->st_ino, .first = SHARED_FIRST, .last = SHARED_LAST, .is_exclusive = log_index },
    };
    pid_t holder = 0;
    for (size_t i = log_index ? 0 : 1; i < sizeof(queries) / sizeof(queries[0]) && !holder; i++)
        holder = ct_lock_holder(&queries[i]);
    return holder;
}

bool ct_database_lock_describe(const char *path, char text[CT_LOCK_HOLDER_BYTES])
{
    struct stat database, log_index;
    char index_path[PATH_MAX + 8];
    snprintf(index_path, sizeof(index_path), "%s-shm", path);
    if (stat(path, &database) != 0)
        return false;
    const pid_t holder = find(&database, stat(index_path, &log_index) == 0 ? &log_index : NULL);
    if (holder > 0)
        ct_lock_holder_describe(holder, text);
    return holder > 0;
}
