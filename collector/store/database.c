#include "database.h"

#include "database_lock.h"
#include "database_problem.h"
#include "numbered_files.h"
#include "own_path.h"
#include "real_user.h"
#include "schema_sql.h"
#include "schema_version.h"
#include "side_files.h"
#include "test_point.h"
#include "trace_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    STEPS_MAX = 1000000,    /* steps of SQLite's virtual machine; a lookup takes a few dozen */
    BUSY_TIMEOUT_MS = 5000, /* for another process's lock */
    LOG_TIMEOUT_MS = 1000,  /* for the lock that is needed to turn the write-ahead log on */
};

static struct ct_private_readers readers = { .mode = 0600, .group = (gid_t)CT_NO_GROUP };

void ct_database_share(const struct ct_private_readers *who)
{
    readers = *who;
}

/* SQLite gives the side files the database's mode regardless of the umask, and also its group when running as
 * root. */
enum { PART_BYTES = sizeof(((struct ct_database *)0)->path) + 16 };

static void name_part(char file[PART_BYTES], const char *path, size_t part)
{
    snprintf(file, PART_BYTES, "%s%s", path, ct_database_parts[part]);
}

static int own(const char *path, const struct ct_private_readers *who, char *message)
{
    for (size_t i = 0; i < CT_DATABASE_PARTS; i++) {
        char file[PART_BYTES], reason[PART_BYTES + 256];
        name_part(file, path, i);
        if (ct_private_own(file, who, reason, sizeof(reason)) != 0)
            return ct_message(message, "%s; remove it, or name another file with --db", reason);
    }
    return 0;
}

/* Removes SQLite's files from index `first` on: all of them if `first` is 0, all except the database if it is
 * 1. Returns 0, or the errno of the first file that cannot be removed. The files after it stay, because a
 * database without its log may lack rows. */
static int remove_parts(const char *path, size_t first)
{
    for (size_t i = first; i < CT_DATABASE_PARTS; i++) {
        char file[PART_BYTES];
        name_part(file, path, i);
        if (ct_own_path_unlink(file) != 0 && errno != ENOENT)
            return errno;
    }
    return 0;
}

int ct_database_own(const char *path, char message[CT_MESSAGE_BYTES])
{
    return own(path, &readers, message);
}

/* Follows a link to the database if the link belongs to this user or to root. Another user's link could point
 * anywhere. */
static int follow_link(char path[4096], char *message)
{
    struct stat status;
    if (ct_real_lstat(path, &status) != 0 || !S_ISLNK(status.st_mode))
        return 0;
    if (status.st_uid != ct_real_euid() && status.st_uid != 0)
        return ct_message(message,
                          "'%s' is a symbolic link of user %u: remove it, or name another file with --db",
                          path, status.st_uid);
    const char *why;
    const int error = ct_own_path_follow(path, 4096 - 16, &why);
    return error ? ct_message(message, "cannot open database '%s': %s", path, why ? why : strerror(-error))
                 : 0;
}

/* Copies the first column of the first row to `text`, or "" if there is no row. `key` is the query's
 * parameter, or NULL. */
static int query_text(sqlite3 *connection, const char *sql, const char *key, char *text, size_t bytes)
{
    sqlite3_stmt *statement;
    text[0] = '\0';
    int rc = sqlite3_prepare_v2(connection, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK && key)
        rc = sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        const unsigned char *value = sqlite3_column_text(statement, 0);
        snprintf(text, bytes, "%s", value ? (const char *)value : "");
    }
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : rc;
}

static int query_meta(sqlite3 *connection, const char *key, char *text, size_t bytes)
{
    return query_text(connection, "SELECT value FROM meta WHERE key = ?1", key, text, bytes);
}

static int give_up(void *data)
{
    (void)data;
    return 1;
}

/* Any file may claim to be a trace, so code in its schema must not run. */
static void distrust(sqlite3 *connection)
{
    static const struct {
        int option, value;
    } settings[] = {
        { SQLITE_DBCONFIG_DEFENSIVE, 1 },
        { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
        { SQLITE_DBCONFIG_ENABLE_TRIGGER, 0 },
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        sqlite3_db_config(connection, settings[i].option, settings[i].value, NULL);
}

/* Closes the current connection, opens another one and counts the objects in the schema. */
static int count_objects(const char *path, int flags, sqlite3 **connection, char *text, size_t bytes)
{
    sqlite3_close(*connection);
    const int rc = sqlite3_open_v2(path, connection, flags, NULL);
    if (!*connection)
        return rc; /* out of memory */
    sqlite3_busy_timeout(*connection, 2000);
    distrust(*connection);
    sqlite3_progress_handler(*connection, STEPS_MAX, give_up, NULL); /* `meta` may be an endless view */
    return rc == SQLITE_OK ? query_text(*connection, "SELECT count(*) FROM sqlite_master", NULL, text, bytes)
                           : rc;
}

enum verdict { REFUSED = -1, EMPTY, OURS, OTHER_BOOT };

/* Inspects a file. Opens it read-only, so that a foreign file stays unchanged. */
static enum verdict inspect(const char *path, const char *boot_id, char *message)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return errno == ENOENT ? EMPTY
                               : (enum verdict)ct_message(message, "cannot open database '%s': %s", path,
                                                          strerror(errno));
    if (S_ISDIR(status.st_mode))
        return (enum verdict)ct_message(message, "'%s' is a directory: name a file with --db", path);
    if (!S_ISREG(status.st_mode))
        return (enum verdict)ct_message(message, "'%s' is not a regular file: name another file with --db",
                                        path);
    if (access(path, R_OK | W_OK) != 0)
        return (enum verdict)ct_message(message, "cannot write database '%s': %s", path, strerror(errno));
    if (status.st_size == 0)
        return EMPTY;

    /* Check the side files as well, because SQLite would read them even if another user had created them. */
    if (own(path, NULL, message) != 0)
        return REFUSED;
    errno = 0;
    sqlite3 *connection = NULL;
    char application[32], version[32], objects[32], boot[CT_ORIGIN_BYTES];
    int rc = count_objects(path, SQLITE_OPEN_READONLY, &connection, objects, sizeof(objects));
    /* If a daemon was killed while creating the file, its journal must be rolled back first. */
    if (rc == SQLITE_READONLY)
        rc = count_objects(path, SQLITE_OPEN_READWRITE, &connection, objects, sizeof(objects));
    enum verdict verdict = OURS;
    if (rc == SQLITE_BUSY) {
        char who[CT_LOCK_HOLDER_BYTES] = "another program";
        ct_database_lock_describe(path, who);
        verdict = (enum verdict)ct_message(
            message, "database '%s' is locked by %s: end that process, or name another file with --db", path,
            who);
    } else if (rc != SQLITE_OK) {
        verdict = (enum verdict)ct_message(
            message, "'%s' is not a readable database (%s): name another file with --db", path,
            ct_database_problem(connection));
    } else if (query_text(connection, "PRAGMA application_id", NULL, application, sizeof(application)) != 0 ||
               query_text(connection, "PRAGMA user_version", NULL, version, sizeof(version)) != 0) {
        verdict =
            (enum verdict)ct_message(message, "cannot read '%s': %s", path, ct_database_problem(connection));
    } else if (strtol(application, NULL, 10) != CT_APPLICATION_ID) {
        verdict =
            strcmp(objects, "0") == 0
                ? EMPTY
                : (enum verdict)ct_message(
                      message, "'%s' is a database of another program: name another file with --db", path);
    } else if (strtol(version, NULL, 10) > CT_SCHEMA_VERSION) {
        verdict = (enum verdict)ct_message(message,
                                           "'%s' was written by a newer cudatrace (schema %s, this one reads "
                                           "%d): update cudatrace, or name another file with --db",
                                           path, version, CT_SCHEMA_VERSION);
    } else if (query_meta(connection, "boot_id", boot, sizeof(boot)) != 0) {
        verdict = (enum verdict)ct_message(message, "'%s' is damaged (%s): name another file with --db", path,
                                           ct_database_problem(connection));
    } else if (strcmp(boot, boot_id) != 0 || strtol(version, NULL, 10) < CT_SCHEMA_VERSION) {
        verdict = OTHER_BOOT;
    }
    sqlite3_close(connection);
    return verdict;
}

/* Locks the file for a single writer, on a descriptor that stays open as long as SQLite's own. Closing it
 * earlier would drop the locks that SQLite holds on the file. */
static int lock(struct ct_database *database, bool *created, char *message)
{
    const char *path = database->path;
    *created = false;
    int fd = ct_own_path_open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0 && errno == ENOENT) {
        fd = ct_own_path_open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        *created = fd >= 0;
    }
    if (fd < 0)
        return ct_message(message, "cannot open database '%s': %s%s", path, strerror(errno),
                          errno == ENOENT
                              ? ": its directory does not exist; create it, or name another file with --db"
                              : "");
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int error = errno;
        struct stat status;
        const bool is_held = error == EWOULDBLOCK && fstat(fd, &status) == 0;
        close(fd);
        return is_held ? ct_database_refuse_locked(path, status.st_ino, message)
                       : ct_message(message, "cannot lock database '%s': %s", path, strerror(error));
    }
    database->lock_fd = fd;
    CT_TEST_POINT("database.locked");
    return 0;
}

static int set_meta_text(sqlite3 *connection, const char *key, const char *value)
{
    sqlite3_stmt *statement;
    int rc = sqlite3_prepare_v2(connection, ct_sql_store_set_meta, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, value, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 2, key, -1, SQLITE_STATIC);
        rc = sqlite3_step(statement) == SQLITE_DONE ? SQLITE_OK : sqlite3_errcode(connection);
    }
    sqlite3_finalize(statement);
    return rc;
}

/* One row for each role. The roles are numbered in the order of role.def. */
static const char role_rows[] =
#define ROLE(name) "INSERT INTO role (role, name) SELECT ifnull(max(role) + 1, 0), '" #name "' FROM role;"
#include "role.def"
#undef ROLE
    ;

static const char new_series[] = "INSERT INTO meta VALUES ('series', lower(hex(randomblob(16))))";

/* Creates and fills the tables. `rollover` is the script that copies rows from an earlier file, or NULL. */
static int create(sqlite3 *connection, const struct ct_origin *origin, const char *rollover)
{
    char pragmas[128], now[32];
    snprintf(pragmas, sizeof(pragmas), "PRAGMA application_id = %d; PRAGMA user_version = %d",
             CT_APPLICATION_ID, CT_SCHEMA_VERSION);
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    snprintf(now, sizeof(now), "%lld", (long long)real.tv_sec);
    /* A plain BEGIN locks only the file that is written, and not an attached earlier file. */
    const char *const scripts[] = {
        "BEGIN",       ct_sql_tables,       ct_sql_views, ct_sql_views_gpu, ct_sql_views_probe,
        ct_sql_status, ct_sql_status_ioctl, role_rows,    pragmas,          new_series
    };
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof(scripts) / sizeof(scripts[0]); i++)
        rc = sqlite3_exec(connection, scripts[i], NULL, NULL, NULL);
    const char *const meta[][2] = {
        { "host", origin->host },       { "boot_id", origin->boot_id },
        { "session", origin->session }, { "cudatrace_version", CUDATRACE_VERSION },
        { "created_unix_s", now },
    };
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof(meta) / sizeof(meta[0]); i++)
        rc = set_meta_text(connection, meta[i][0], meta[i][1]);
    if (rc == SQLITE_OK && rollover)
        rc = sqlite3_exec(connection, rollover, NULL, NULL, NULL);
    CT_TEST_POINT("database.filled");
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(connection, "COMMIT", NULL, NULL, NULL);
    CT_TEST_POINT("database.made");
    return rc;
}

/* Turns the write-ahead log on, as recorded in the file's header. Changing the header is a single write,
 * smaller than a disk sector, so no journal file is needed. After a power failure, a journal file would keep
 * readers out until it is rolled back. */
static int turn_log_on(sqlite3 *connection)
{
    char mode[32];
    int rc = query_text(connection, "PRAGMA journal_mode", NULL, mode, sizeof(mode));
    if (rc == SQLITE_OK && strcmp(mode, "wal") != 0)
        rc = sqlite3_exec(connection, "PRAGMA journal_mode = MEMORY", NULL, NULL, NULL);
    return rc == SQLITE_OK ? sqlite3_exec(connection, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) : rc;
}

static int connect_to(struct ct_database *database, char *message)
{
    sqlite3 **connection = &database->connection;
    errno = 0;
    int rc = sqlite3_open_v2(database->path, connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (*connection) { /* otherwise out of memory */
        sqlite3_busy_timeout(*connection, LOG_TIMEOUT_MS);
        distrust(*connection);
    }
    if (rc == SQLITE_OK)
        rc = turn_log_on(*connection);
    database->is_held = rc == SQLITE_BUSY;
    /* With synchronous = NORMAL, a power failure may lose the last commits but never damages the database. */
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(
            *connection,
            "PRAGMA synchronous = NORMAL;"
            "PRAGMA wal_autocheckpoint = 4096; PRAGMA journal_size_limit = 134217728;"
            "PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;"
            "PRAGMA cell_size_check = ON;"
            "PRAGMA secure_delete = OFF", /* by default, Debian's SQLite overwrites deleted data with zeros */
            NULL, NULL, NULL);
    if (*connection)
        sqlite3_busy_timeout(*connection, BUSY_TIMEOUT_MS);
    CT_TEST_POINT("database.opened");
    return rc == SQLITE_OK ? 0
                           : ct_message(message, "cannot write database '%s': %s", database->path,
                                        ct_database_problem(*connection));
}

/* Creates the tables in an empty file. If `past` names a file, the new file continues it. */
static int fill(struct ct_database *database, const char *past, char *message)
{
    sqlite3 *connection = database->connection;
    char *attach = past ? sqlite3_mprintf("ATTACH %Q AS past", past) : NULL;
    int rc = attach ? sqlite3_exec(connection, attach, NULL, NULL, NULL) : SQLITE_OK;
    if (rc == SQLITE_OK)
        rc = create(connection, &database->origin, past ? ct_sql_rollover : NULL);
    if (rc == SQLITE_OK && attach)
        rc = sqlite3_exec(connection, "DETACH past", NULL, NULL, NULL);
    sqlite3_free(attach);
    return rc == SQLITE_OK ? 0
                           : ct_message(message, "cannot write database '%s': %s", database->path,
                                        ct_database_problem(connection));
}

/* Closes the file, and removes it if it was created but could not be filled. */
static void take_back(struct ct_database *database, bool created)
{
    ct_database_close(database);
    if (created)
        remove_parts(database->path, 0);
}

/* Makes file `number` the current file, without reading it. Returns EMPTY if its path can be used, and
 * REFUSED otherwise. */
static enum verdict name_file(struct ct_database *database, uint32_t number, char *message)
{
    database->number = number;
    if (!ct_trace_file(database->path, sizeof(database->path), database->trace, number))
        return (enum verdict)ct_message(message, "the path of database '%s' is too long", database->trace);
    return follow_link(database->path, message) == 0 ? EMPTY : REFUSED;
}

/* Selects the file to write: the newest file with contents or, if that file cannot be continued, the file
 * with the next number. Empty files with higher numbers were left behind by daemons that were killed while
 * creating them. */
static enum verdict find(struct ct_database *database, char *message)
{
    const uint32_t newest = ct_numbered_before(database->trace, UINT32_MAX);
    enum verdict verdict = EMPTY;
    uint32_t number = newest;
    while (number > 0 && (verdict = name_file(database, number, message)) != REFUSED &&
           (verdict = inspect(database->path, database->origin.boot_id, message)) == EMPTY)
        number = ct_numbered_before(database->trace, number);
    if (verdict == OTHER_BOOT) {
        number = ct_numbered_after(database->trace, number);
        verdict = EMPTY;
    } else if (number == 0) {
        number = newest ? newest : 1;
    }
    return verdict == REFUSED || name_file(database, number, message) == REFUSED ? REFUSED : verdict;
}

/* Locks the current file, makes it private, opens it and, unless the verdict is OURS, fills it. If `past`
 * names a file, the current file continues that one. On failure, removes the file if this function created
 * it. */
static int take(struct ct_database *database, enum verdict verdict, const char *past, char *message)
{
    bool created = false;
    /* Check this first, so that a failure removes only files that belong to this user. */
    if (own(database->path, NULL, message) != 0 || lock(database, &created, message) != 0)
        return -1;
    /* Side files next to a new database belong to a deleted database, whose readers may still share its -shm
     * file. */
    if (created)
        remove_parts(database->path, 1);
    if (ct_database_own(database->path, message) == 0 && connect_to(database, message) == 0 &&
        (verdict == OURS || fill(database, past, message) == 0) &&
        ct_database_own(database->path, message) == 0) {
        if (sqlite3_exec(database->connection, "BEGIN IMMEDIATE; COMMIT", NULL, NULL, NULL) == SQLITE_OK &&
            query_meta(database->connection, "series", database->series, sizeof(database->series)) == 0)
            return 0;
        ct_message(message, "cannot write database '%s': %s", database->path,
                   ct_database_problem(database->connection));
    }
    take_back(database, created);
    return -1;
}

int ct_database_open(struct ct_database *database, const char *path, const struct ct_origin *origin,
                     char message[CT_MESSAGE_BYTES])
{
    *database = (struct ct_database){ .lock_fd = -1, .origin = *origin };
    ct_side_files_guard();
    if (strlen(path) + 16 > sizeof(database->path))
        return ct_message(message, "the path of database '%s' is too long", path);
    snprintf(database->trace, sizeof(database->trace), "%s", path);
    if (follow_link(database->trace, message) != 0)
        return -1;
    const enum verdict verdict = find(database, message);
    if (verdict == REFUSED)
        return -1;
    if (take(database, verdict, NULL, message) == 0)
        return 0;
    if (verdict != OURS || !database->is_held)
        return -1;
    /* If another program is reading a plain file, it stays unchanged, and the trace continues in the next
     * file.
     */
    const struct ct_database past = *database;
    return ct_database_follow(&past, database, message);
}

static bool is_same_file(const char *path, int fd)
{
    struct stat named, held;
    return stat(path, &named) == 0 && fstat(fd, &held) == 0 && named.st_ino == held.st_ino &&
           named.st_dev == held.st_dev;
}

bool ct_database_in_place(const struct ct_database *database)
{
    return is_same_file(database->path, database->lock_fd);
}

/* Turns the write-ahead log off for a file that is no longer written. Without a log, a file can be opened on
 * read-only media, and where memory cannot be shared. If a reader has the file open, the log stays. As in
 * turn_log_on(), no journal file is used. Other connections see journal mode DELETE. */
static void make_plain(sqlite3 *connection)
{
    sqlite3_busy_timeout(connection, 0);
    sqlite3_exec(connection, "PRAGMA journal_mode = MEMORY", NULL, NULL, NULL);
    CT_TEST_POINT("database.plain");
}

void ct_database_close(struct ct_database *database)
{
    /* If the file was moved, leave alone any file that is now at its former path. */
    if (database->connection && ct_database_in_place(database))
        make_plain(database->connection);
    sqlite3_close(database->connection);
    database->connection = NULL;
    if (database->lock_fd >= 0)
        close(database->lock_fd);
    database->lock_fd = -1;
}

/* ---- the files of a series ---- */

int ct_database_follow(const struct ct_database *past, struct ct_database *next,
                       char message[CT_MESSAGE_BYTES])
{
    *next = *past;
    next->connection = NULL;
    next->lock_fd = -1;
    if (name_file(next, ct_numbered_after(past->trace, past->number), message) == REFUSED)
        return -1;
    const enum verdict verdict = inspect(next->path, next->origin.boot_id, message);
    if (verdict == REFUSED)
        return -1;
    if (verdict != EMPTY)
        return ct_message(message, "'%s' is a file of another trace", next->path);
    return take(next, EMPTY, past->path, message);
}

void ct_database_discard(struct ct_database *next)
{
    take_back(next, true);
}

/* Does not trust the path of an earlier file. By now, there may be a FIFO at that path, another user's file,
 * another trace's file, or a link to the current file. */
sqlite3 *ct_database_open_earlier(const struct ct_database *database, uint32_t number, bool with_log,
                                  char path[4096])
{
    char reason[CT_MESSAGE_BYTES], place[PATH_MAX], log[PATH_MAX + 8], series[CT_SERIES_BYTES];
    if (!ct_trace_file(path, sizeof(database->path), database->trace, number) ||
        follow_link(path, reason) != 0 || ct_private_own(path, NULL, reason, sizeof(reason)) != 0 ||
        !realpath(path, place) || is_same_file(place, database->lock_fd))
        return NULL;
    snprintf(log, sizeof(log), "%s-wal", place);
    const int access_flag =
        with_log && ct_side_file_exists(log) ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
    sqlite3 *connection = NULL;
    if (sqlite3_open_v2(place, &connection, access_flag | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL) ==
        SQLITE_OK) {
        distrust(connection);
        sqlite3_progress_handler(connection, STEPS_MAX, give_up, NULL); /* its tables may be endless views */
        if (query_meta(connection, "series", series, sizeof(series)) == 0 && *series &&
            strcmp(series, database->series) == 0)
            return connection;
    }
    sqlite3_close(connection);
    return NULL;
}

/* Opens an earlier file of the series briefly. If readers left a log behind, writes the log into the file and
 * turns it off. Sets *until_ns to the return time of the last call in the files before this one, or 0 if
 * there is none. */
static bool tend(const struct ct_database *database, uint32_t number, char path[4096], uint64_t *until_ns)
{
    char until[32];
    sqlite3 *connection = ct_database_open_earlier(database, number, true, path);
    if (!connection)
        return false;
    query_meta(connection, "earlier_files_until_ns", until, sizeof(until));
    *until_ns = strtoull(until, NULL, 10);
    sqlite3_progress_handler(connection, 0, NULL, NULL);
    if (!sqlite3_db_readonly(connection, "main")) {
        sqlite3_wal_checkpoint_v2(connection, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        make_plain(connection);
    }
    sqlite3_close(connection);
    return true;
}

void ct_database_prune(const struct ct_database *database, uint64_t bytes, uint64_t keep_from_ns,
                       void (*on_removed)(const char *path, int error))
{
    char until[32], path[sizeof(database->path)];
    if (query_meta(database->connection, "earlier_files_until_ns", until, sizeof(until)) != 0)
        return;
    uint64_t total = ct_numbered_bytes(database->path), last_call_ns = strtoull(until, NULL, 10);
    uint32_t files = 1;
    bool goes = false;
    for (uint32_t number = database->number; (number = ct_numbered_before(database->trace, number)) != 0;) {
        uint64_t until_ns;
        if (!tend(database, number, path, &until_ns))
            break;
        total += ct_numbered_bytes(path);
        /* Also remove all files before a removed file, so that the series has no gaps. */
        goes |= (bytes && (++files > CT_SERIES_FILES_MAX || total > bytes)) ||
                (keep_from_ns && last_call_ns < keep_from_ns);
        if (goes) {
            CT_TEST_POINT("database.removing");
            on_removed(path, remove_parts(path, 0));
        }
        last_call_ns = until_ns;
    }
}
