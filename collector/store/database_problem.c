#include "database_problem.h"

#include "database_lock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *ct_database_problem(sqlite3 *connection)
{
    static _Thread_local char text[512];
    char who[CT_LOCK_HOLDER_BYTES];
    /* sqlite3_system_errno() is correct after some calls but outdated after others, so use errno. */
    const int kind = sqlite3_errcode(connection) & 0xff, error = errno;
    const bool system = error != 0 && (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN);
    const bool lacks_mappings =
        sqlite3_extended_errcode(connection) == SQLITE_IOERR_SHMMAP && error != ENOMEM;
    const char *path = kind == SQLITE_BUSY ? sqlite3_db_filename(connection, "main") : NULL;
    if (path && ct_database_lock_describe(path, who)) {
        snprintf(text, sizeof(text), "it is locked by %s; end that process", who);
        return text;
    }
    /* If SQLite has recorded no error, this process is out of memory. */
    const char *said = kind == SQLITE_OK || kind == SQLITE_ROW || kind == SQLITE_DONE ? "out of memory"
                       : lacks_mappings ? "its file system does not support shared memory mappings"
                                        : sqlite3_errmsg(connection);
    snprintf(text, sizeof(text), "%s%s%s%s", said, system ? ": " : "", system ? strerror(error) : "",
             lacks_mappings ? "; name a file on a local disk with --db" : "");
    return text;
}

int ct_database_refuse_locked(const char *path, ino_t inode, char message[CT_MESSAGE_BYTES])
{
    char who[CT_LOCK_HOLDER_BYTES];
    const pid_t holder = ct_lock_holder(&(struct ct_lock_query){ .inode = inode, .is_flock = true });
    if (!holder)
        return ct_message(message,
                          "database '%s' is locked by a process that is not visible from here, such as a "
                          "cudatraced in a container: name another file with --db",
                          path);
    if (ct_lock_holder_describe(holder, who))
        return ct_message(
            message, "database '%s' is being written by another cudatraced, %s: name another file with --db",
            path, who);
    return ct_message(message,
                      "database '%s' is locked by %s: end that process, or name another file with --db", path,
                      who);
}
