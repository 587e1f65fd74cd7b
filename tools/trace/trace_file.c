#include "trace_file.h"

#include "bounded_sum.h"
#include "confine.h"
#include "database_lock.h"
#include "schema_version.h"
#include "side_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- queries ---- */

/* Runs a query up to its first row. Returns the statement, which the caller finalizes, or NULL if there is no
 * row. */
static sqlite3_stmt *first_row(sqlite3 *connection, const char *sql, int64_t bound)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) == SQLITE_OK) {
        if (sqlite3_bind_parameter_count(statement) > 0)
            sqlite3_bind_int64(statement, 1, bound);
        if (sqlite3_step(statement) == SQLITE_ROW)
            return statement;
    }
    sqlite3_finalize(statement);
    return NULL;
}

int64_t ct_ask_number(sqlite3 *connection, const char *sql, int64_t bound, int64_t otherwise)
{
    sqlite3_stmt *row = first_row(connection, sql, bound);
    const int64_t number =
        row && sqlite3_column_type(row, 0) == SQLITE_INTEGER ? sqlite3_column_int64(row, 0) : otherwise;
    sqlite3_finalize(row);
    return number;
}

void ct_ask_text(sqlite3 *connection, const char *sql, int64_t bound, char *text, size_t bytes)
{
    sqlite3_stmt *row = first_row(connection, sql, bound);
    const char *found = row ? (const char *)sqlite3_column_text(row, 0) : NULL;
    snprintf(text, bytes, "%s", found ? found : "");
    sqlite3_finalize(row);
}

void ct_bind_number(sqlite3_stmt *statement, const char *name, int64_t value)
{
    const int place = sqlite3_bind_parameter_index(statement, name);
    if (place > 0)
        sqlite3_bind_int64(statement, place, value);
}

const char *ct_sqlite_why(sqlite3 *connection, int rc)
{
    const int last = connection ? sqlite3_errcode(connection) : SQLITE_NOMEM;
    if (connection && sqlite3_extended_errcode(connection) == SQLITE_IOERR_SHMMAP)
        return "its file system does not support shared memory mappings, which a write-ahead log needs; copy "
               "the trace and its -wal file to a local disk";
    const bool is_error = last != SQLITE_OK && last != SQLITE_ROW && last != SQLITE_DONE;
    return connection && is_error ? sqlite3_errmsg(connection)
                                  : sqlite3_errstr(connection ? rc : SQLITE_NOMEM);
}

bool ct_trace_why(sqlite3 *connection, int rc, char *why, size_t bytes)
{
    char said[256];
    snprintf(said, sizeof(said), "%s", ct_sqlite_why(connection, rc));
    const int64_t schema = connection ? ct_ask_number(connection, "PRAGMA user_version", 0, -1) : -1;
    const bool is_older = schema >= 0 && schema < CT_SCHEMA_VERSION;
    if (is_older)
        snprintf(why, bytes, "the trace was written by an older cudatrace (schema %lld, this one reads %d)",
                 (long long)schema, CT_SCHEMA_VERSION);
    else
        snprintf(why, bytes, "%s", said);
    return is_older;
}

/* ---- opening ---- */

/* SQLite follows links, and looks for the side files next to their targets. Returns `path` if it cannot be
 * resolved. */
static const char *resolve(const char *path, char real[PATH_MAX])
{
    return realpath(path, real) ? real : path;
}

/* A trace without a write-ahead log is not being written, so it is opened as immutable. SQLite would
 * otherwise create files next to the trace that the reader may not be allowed to remove. If the folder is not
 * writable, opening the trace would fail. */
char *ct_trace_file_uri(const char *path)
{
    char real[PATH_MAX], *wal = sqlite3_mprintf("%s-wal", resolve(path, real));
    const bool is_written = wal && ct_side_file_exists(wal);
    /* In the URI, the host after the two slashes is empty. Relative paths are prefixed with "./", so that
     * SQLite does not interpret names such as :memory: or file:…. */
    sqlite3_str *uri = sqlite3_str_new(NULL);
    sqlite3_str_appendall(uri, path[0] == '/' ? "file://" : "file:./");
    for (const char *at = path; *at; at++) {
        if (strchr("?#%", *at))
            sqlite3_str_appendf(uri, "%%%02X", *at);
        else
            sqlite3_str_append(uri, at, 1);
    }
    sqlite3_str_appendall(uri, is_written ? "" : "?immutable=1");
    sqlite3_free(wal);
    return sqlite3_str_finish(uri);
}

/* Returns whether the file needs its write-ahead log, which is not next to this name, while another process
 * has the file open. A connection with a log holds a shared lock on these bytes of the file as long as it is
 * open (https://www.sqlite.org/fileformat.html, "The Lock-Byte Page"). */
static bool is_open_elsewhere(const char *path)
{
    enum { WRITE_VERSION_AT = 18, WRITE_VERSION_LOG = 2, SHARED_FIRST = 0x40000002, SHARED_BYTES = 510 };
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = SHARED_FIRST, .l_len = SHARED_BYTES
    };
    char real[PATH_MAX], log[PATH_MAX];
    uint8_t version = 0;
    const int n = snprintf(log, sizeof(log), "%s-wal", resolve(path, real));
    if ((size_t)n >= sizeof(log) || ct_side_file_exists(log))
        return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const bool is_locked = fd >= 0 && pread(fd, &version, 1, WRITE_VERSION_AT) == 1 &&
                           version == WRITE_VERSION_LOG && fcntl(fd, F_GETLK, &lock) == 0 &&
                           lock.l_type != F_UNLCK;
    if (fd >= 0)
        close(fd);
    return is_locked && !ct_side_file_exists(log);
}

bool ct_trace_file_is_elsewhere(const char *path)
{
    /* A daemon that turns its log on or off changes the header and the log one after the other. */
    enum { TRIES = 10, PAUSE_NS = 10000000 };
    int tries = 0;
    while (is_open_elsewhere(path) && ++tries < TRIES)
        nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
    return tries == TRIES;
}

/* Returns why a file must not be opened, or NULL if it may be opened. Opening a FIFO would block, and opening
 * a device may have side effects. */
static const char *refusal(const char *path)
{
    struct stat status;
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode) && ct_trace_file_is_elsewhere(path))
        return "a daemon writes it under another name, and the newest calls are in the write-ahead log next "
               "to that name; open that name, or mount its folder instead of the file";
    if (stat(path, &status) != 0 || S_ISREG(status.st_mode))
        return NULL;
    return S_ISDIR(status.st_mode) ? "it is a directory" : "it is not a regular file";
}

int ct_trace_file_open(const char *path, sqlite3 **connection)
{
    *connection = NULL;
    if (refusal(path))
        return SQLITE_CANTOPEN;
    char *uri = ct_trace_file_uri(path);
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
    int rc = uri ? sqlite3_open_v2(uri, connection, flags, NULL) : SQLITE_NOMEM;
    sqlite3_free(uri);
    if (!*connection)
        return SQLITE_NOMEM;
    sqlite3_busy_timeout(*connection, 10000);
    ct_trace_confine(*connection);
    if (rc == SQLITE_OK)
        rc = ct_bounded_sum_add(*connection);
    if (rc == SQLITE_OK && ct_ask_number(*connection, "SELECT count(*) FROM sqlite_master", 0, -1) < 0)
        rc = sqlite3_errcode(*connection);
    return rc;
}

const char *ct_trace_file_problem(const char *path, sqlite3 *connection)
{
    static _Thread_local char text[CT_LOCK_HOLDER_BYTES + 64];
    char real[PATH_MAX], who[CT_LOCK_HOLDER_BYTES];
    const bool is_locked = connection && sqlite3_errcode(connection) == SQLITE_BUSY;
    const char *refused = refusal(path);
    if (refused)
        return refused;
    if (access(path, R_OK) != 0)
        return strerror(errno);
    if (ct_side_file_of_other(resolve(path, real)))
        return "its -wal, -shm or -journal file does not belong to the trace's owner, or is a link; remove "
               "it";
    if (is_locked && ct_database_lock_describe(resolve(path, real), who)) {
        snprintf(text, sizeof(text), "it is locked by %s; end that process", who);
        return text;
    }
    return ct_sqlite_why(connection, SQLITE_NOMEM);
}

bool ct_trace_inspect(const char *path, struct ct_trace_facts *facts, char *problem, size_t bytes)
{
    *facts = (struct ct_trace_facts){ 0 };
    sqlite3 *connection = NULL;
    const bool readable = ct_trace_file_open(path, &connection) == SQLITE_OK;
    if (readable) {
        ct_trace_hurry(connection);
        facts->application = ct_ask_number(connection, "PRAGMA application_id", 0, -1);
        facts->schema = ct_ask_number(connection, "PRAGMA user_version", 0, -1);
        facts->objects = ct_ask_number(connection, "SELECT count(*) FROM sqlite_master", 0, -1);
        ct_ask_text(connection, "SELECT value FROM meta WHERE key = 'boot_id'", 0, facts->boot_id,
                    sizeof(facts->boot_id));
        ct_ask_text(connection, "SELECT value FROM meta WHERE key = 'series'", 0, facts->series,
                    sizeof(facts->series));
    } else if (problem) {
        snprintf(problem, bytes, "%s", ct_trace_file_problem(path, connection));
    }
    sqlite3_close(connection);
    return readable;
}
