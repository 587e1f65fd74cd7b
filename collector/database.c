#include "database.h"

#include "schema_sql.h"
#include "schema_version.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    NUMBERED_MAX = 10000,
    STEPS_MAX = 1000000, /* of SQLite's machine, where a look takes a few dozen */
};

static int fail(char *message, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int fail(char *message, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, CT_STORE_MESSAGE_BYTES, format, arguments);
    va_end(arguments);
    return -1;
}

static struct ct_private_readers readers = { .mode = 0600, .group = (gid_t)CT_NO_GROUP };

void ct_database_share(const struct ct_private_readers *who)
{
    readers = *who;
}

/* SQLite gives the mode of the database, and as root its group, to what it makes beside it, whatever the
 * umask is: so the database comes first. */
static int own(const char *path, const struct ct_private_readers *who, char *message)
{
    static const char *const ends[] = { "", "-journal", "-wal", "-shm" };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char file[4096 + 16], reason[4096 + 256];
        snprintf(file, sizeof(file), "%s%s", path, ends[i]);
        if (ct_private_own(file, who, reason, sizeof(reason)) != 0)
            return fail(message, "%s: remove it, or name another file with --db", reason);
    }
    return 0;
}

int ct_database_own(const char *path, char message[CT_STORE_MESSAGE_BYTES])
{
    return own(path, &readers, message);
}

/* A link of ours, or of root's, may lead to the database; another user's leads where he likes. */
static int follow_link(char path[4096], char *message)
{
    struct stat status;
    char target[PATH_MAX];
    if (lstat(path, &status) != 0 || !S_ISLNK(status.st_mode))
        return 0;
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return fail(message, "'%s' is a link that another user made: name another file with --db", path);
    if (!realpath(path, target) || strlen(target) + 16 > 4096)
        return fail(message, "cannot open database '%s': %s", path, strerror(errno));
    strcpy(path, target);
    return 0;
}

static void read_line(const char *path, char *text, size_t bytes)
{
    FILE *file = fopen(path, "re");
    if (!file || !fgets(text, (int)bytes, file))
        text[0] = '\0';
    if (file)
        fclose(file);
    text[strcspn(text, "\n")] = '\0';
}

static int query_text(sqlite3 *connection, const char *sql, char *text, size_t bytes)
{
    sqlite3_stmt *statement;
    text[0] = '\0';
    int rc = sqlite3_prepare_v2(connection, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        const unsigned char *value = sqlite3_column_text(statement, 0);
        snprintf(text, bytes, "%s", value ? (const char *)value : "");
    }
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : rc;
}

static int give_up(void *data)
{
    (void)data;
    return 1;
}

/* A file may come from anywhere and say that it is ours: nothing that its schema brings along runs here. */
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

enum verdict { REFUSED = -1, EMPTY, OURS, OTHER_BOOT };

/* Looks without writing: read-only, so that a foreign file stays as it is. */
static enum verdict inspect(const char *path, const char *boot_id, char *message)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return errno == ENOENT
                   ? EMPTY
                   : (enum verdict)fail(message, "cannot open database '%s': %s", path, strerror(errno));
    if (S_ISDIR(status.st_mode))
        return (enum verdict)fail(message, "'%s' is a directory: name a file with --db", path);
    if (!S_ISREG(status.st_mode))
        return (enum verdict)fail(message, "'%s' is not a regular file: name another with --db", path);
    if (access(path, R_OK | W_OK) != 0)
        return (enum verdict)fail(message, "cannot write database '%s': %s", path, strerror(errno));
    if (status.st_size == 0)
        return EMPTY;

    /* SQLite would read what somebody else has put beside it. */
    if (own(path, NULL, message) != 0)
        return REFUSED;
    sqlite3 *connection = NULL;
    char application[32], version[32], objects[32], boot[64];
    int rc = sqlite3_open_v2(path, &connection, SQLITE_OPEN_READONLY, NULL);
    sqlite3_busy_timeout(connection, 2000);
    distrust(connection);
    sqlite3_progress_handler(connection, STEPS_MAX, give_up, NULL); /* `meta` may be a view without end */
    if (rc == SQLITE_OK)
        rc = query_text(connection, "SELECT count(*) FROM sqlite_master", objects, sizeof(objects));
    enum verdict verdict = OURS;
    if (rc != SQLITE_OK) {
        verdict =
            (enum verdict)fail(message, "'%s' is no readable database (%s): name another file with --db",
                               path, sqlite3_errmsg(connection));
    } else if (query_text(connection, "PRAGMA application_id", application, sizeof(application)) != 0 ||
               query_text(connection, "PRAGMA user_version", version, sizeof(version)) != 0) {
        verdict = (enum verdict)fail(message, "cannot read '%s': %s", path, sqlite3_errmsg(connection));
    } else if (strtol(application, NULL, 10) != CT_APPLICATION_ID) {
        verdict =
            strcmp(objects, "0") == 0
                ? EMPTY
                : (enum verdict)fail(
                      message, "'%s' is a database of another program: name another file with --db", path);
    } else if (strtol(version, NULL, 10) > CT_SCHEMA_VERSION) {
        verdict = (enum verdict)fail(message,
                                     "'%s' was written by a newer cudatrace (schema %s, this one knows %d): "
                                     "update cudatrace, or name another file with --db",
                                     path, version, CT_SCHEMA_VERSION);
    } else if (query_text(connection, "SELECT value FROM meta WHERE key = 'boot_id'", boot, sizeof(boot)) !=
               0) {
        verdict = (enum verdict)fail(message, "'%s' is damaged (%s): name another file with --db", path,
                                     sqlite3_errmsg(connection));
    } else if (strcmp(boot, boot_id) != 0 || strtol(version, NULL, 10) < CT_SCHEMA_VERSION) {
        verdict = OTHER_BOOT;
    }
    sqlite3_close(connection);
    return verdict;
}

/* trace.db, trace.2.db, trace.3.db, … */
static void numbered(char *out, size_t bytes, const char *path, int number)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    if (number == 1)
        snprintf(out, bytes, "%s", path);
    else if (dot && (!slash || dot > slash + 1))
        snprintf(out, bytes, "%.*s.%d%s", (int)(dot - path), path, number, dot);
    else
        snprintf(out, bytes, "%s.%d", path, number);
}

/* One writer: a lock on a descriptor of its own, which lives as long as SQLite's (closing it earlier would
 * drop the locks that SQLite holds on the same file). */
static int lock(struct ct_database *database, bool *created, char *message)
{
    const char *path = database->path;
    *created = false;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        *created = fd >= 0;
    }
    if (fd < 0)
        return fail(message, "cannot open database '%s': %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int error = errno;
        close(fd);
        return error == EWOULDBLOCK
                   ? fail(message,
                          "database '%s' is being written by another cudatraced: name another file with --db",
                          path)
                   : fail(message, "cannot lock database '%s': %s", path, strerror(error));
    }
    database->lock_fd = fd;
    return 0;
}

static int set_meta_text(sqlite3 *connection, const char *key, const char *value)
{
    sqlite3_stmt *statement;
    int rc = sqlite3_prepare_v2(connection, ct_sql_store_set_meta, -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 2, value, -1, SQLITE_STATIC);
        rc = sqlite3_step(statement) == SQLITE_DONE ? SQLITE_OK : sqlite3_errcode(connection);
    }
    sqlite3_finalize(statement);
    return rc;
}

/* One row for each role, numbered in their order. */
static const char role_rows[] =
#define ROLE(name) "INSERT INTO role (role, name) SELECT ifnull(max(role) + 1, 0), '" #name "' FROM role;"
#include "role.def"
#undef ROLE
    ;

static int create(sqlite3 *connection, const char *session, const char *boot_id)
{
    char pragmas[128], host[256] = "", now[32];
    snprintf(pragmas, sizeof(pragmas), "PRAGMA application_id = %d; PRAGMA user_version = %d",
             CT_APPLICATION_ID, CT_SCHEMA_VERSION);
    gethostname(host, sizeof(host) - 1);
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    snprintf(now, sizeof(now), "%lld", (long long)real.tv_sec);
    const char *const scripts[] = { "BEGIN IMMEDIATE",   ct_sql_tables, ct_sql_views, ct_sql_status,
                                    ct_sql_status_ioctl, role_rows,     pragmas };
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof(scripts) / sizeof(scripts[0]); i++)
        rc = sqlite3_exec(connection, scripts[i], NULL, NULL, NULL);
    const char *const meta[][2] = {
        { "host", host },          { "boot_id", boot_id },
        { "session", session },    { "cudatrace_version", CUDATRACE_VERSION },
        { "created_unix_s", now },
    };
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof(meta) / sizeof(meta[0]); i++)
        rc = set_meta_text(connection, meta[i][0], meta[i][1]);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(connection, "COMMIT", NULL, NULL, NULL);
    return rc;
}

static int open_connection(struct ct_database *database, enum verdict verdict, const char *session,
                           const char *boot_id, char *message)
{
    sqlite3 **connection = &database->connection;
    int rc = sqlite3_open_v2(database->path, connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    sqlite3_busy_timeout(*connection, 5000);
    distrust(*connection);
    /* Synchronous NORMAL: a power cut may cost the last commits and never the database. */
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(
            *connection,
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
            "PRAGMA wal_autocheckpoint = 4096; PRAGMA journal_size_limit = 67108864;"
            "PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;"
            "PRAGMA secure_delete = OFF", /* Debian's default writes zeros over what is deleted */
            NULL, NULL, NULL);
    if (rc == SQLITE_OK && verdict == EMPTY)
        rc = create(*connection, session, boot_id);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(*connection, "BEGIN IMMEDIATE; COMMIT", NULL, NULL, NULL);
    return rc == SQLITE_OK
               ? 0
               : fail(message, "cannot write database '%s': %s", database->path, sqlite3_errmsg(*connection));
}

int ct_database_open(struct ct_database *database, const char *path, const char *session,
                     char message[CT_STORE_MESSAGE_BYTES])
{
    *database = (struct ct_database){ .lock_fd = -1 };
    char boot_id[64];
    read_line("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
    if (strlen(path) + 16 > sizeof(database->path))
        return fail(message, "the path of the database is too long");

    enum verdict verdict = OTHER_BOOT;
    for (int number = 1; verdict == OTHER_BOOT && number < NUMBERED_MAX; number++) {
        numbered(database->path, sizeof(database->path), path, number);
        if (follow_link(database->path, message) != 0)
            return -1;
        verdict = inspect(database->path, boot_id, message);
    }
    if (verdict == OTHER_BOOT)
        return fail(message,
                    "'%s' and its numbered successors belong to earlier boots: name another file with --db",
                    path);
    bool created = false;
    /* Also where the database is still to be made: what would be taken away again after a failure is ours. */
    if (verdict == REFUSED || own(database->path, NULL, message) != 0 ||
        lock(database, &created, message) != 0)
        return -1;
    if (ct_database_own(database->path, message) == 0 &&
        open_connection(database, verdict, session, boot_id, message) == 0 &&
        ct_database_own(database->path, message) == 0)
        return 0;
    /* What we made and could not fill goes again: nothing is left of a start that failed. */
    ct_database_close(database);
    if (created) {
        char side[sizeof(database->path) + 8];
        unlink(database->path);
        snprintf(side, sizeof(side), "%s-wal", database->path);
        unlink(side);
        snprintf(side, sizeof(side), "%s-shm", database->path);
        unlink(side);
    }
    return -1;
}

void ct_database_close(struct ct_database *database)
{
    sqlite3_close(database->connection);
    database->connection = NULL;
    if (database->lock_fd >= 0)
        close(database->lock_fd);
    database->lock_fd = -1;
}
