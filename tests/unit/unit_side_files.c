/* unit_side_files.c: a file with the name of a side file does not become a part of a database, and does not
 * get another owner, if another user has put it there. As a user other than root, only links and FIFOs are
 * tried. */
#include "side_files.h"

#include "../ensure.h"

#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OTHER = 65534 };

static char folder[] = "/tmp/side-files-XXXXXX";

static const char *in_folder(const char *name)
{
    static char paths[8][PATH_MAX];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

static void execute(sqlite3 *connection, const char *sql)
{
    const int rc = sqlite3_exec(connection, sql, NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(connection));
    ENSURE(rc == SQLITE_OK);
}

static sqlite3 *opened(const char *name, int flags)
{
    sqlite3 *connection;
    ENSURE(sqlite3_open_v2(in_folder(name), &connection, flags, NULL) == SQLITE_OK);
    return connection;
}

static void copy(const char *from, const char *to)
{
    char bytes[1 << 16];
    const int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ssize_t count;
    ENSURE(in >= 0 && out >= 0);
    while ((count = read(in, bytes, sizeof(bytes))) > 0)
        ENSURE(write(out, bytes, (size_t)count) == count);
    ENSURE(count == 0 && close(in) == 0 && close(out) == 0);
}

/* Makes the database "trace" with the word "own", and the log "planted", in which the word is "false". */
static void make_files(void)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    sqlite3 *connection = opened("trace", flags);
    execute(connection,
            "PRAGMA journal_mode = WAL; CREATE TABLE word (word); INSERT INTO word VALUES ('own')");
    sqlite3_close(connection);
    copy(in_folder("trace"), in_folder("copy"));
    connection = opened("copy", flags);
    execute(connection, "PRAGMA wal_autocheckpoint = 0; UPDATE word SET word = 'false'");
    copy(in_folder("copy-wal"), in_folder("planted"));
    sqlite3_close(connection);
}

/* Opens "trace" as the tools do: as immutable if it has no log. */
static sqlite3 *opened_to_read(void)
{
    char uri[PATH_MAX + 32];
    sqlite3 *connection;
    snprintf(uri, sizeof(uri), "file://%s%s", in_folder("trace"),
             ct_side_file_exists(in_folder("trace-wal")) ? "" : "?immutable=1");
    ENSURE(sqlite3_open_v2(uri, &connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) == SQLITE_OK);
    return connection;
}

static void check_word(sqlite3 *connection, const char *wanted)
{
    sqlite3_stmt *statement;
    ENSURE(sqlite3_prepare_v2(connection, "SELECT word FROM word", -1, &statement, NULL) == SQLITE_OK);
    ENSURE(sqlite3_step(statement) == SQLITE_ROW);
    ENSURE(strcmp((const char *)sqlite3_column_text(statement, 0), wanted) == 0);
    sqlite3_finalize(statement);
}

static void check_owner(const char *name, uid_t owner)
{
    struct stat status;
    ENSURE(lstat(in_folder(name), &status) == 0 && status.st_uid == owner);
}

static void plant(void)
{
    copy(in_folder("planted"), in_folder("trace-wal"));
    ENSURE(chown(in_folder("trace-wal"), OTHER, OTHER) == 0);
}

static void remove_side_files(void)
{
    unlink(in_folder("trace-wal"));
    unlink(in_folder("trace-shm"));
    unlink(in_folder("trace-journal"));
}

/* The log would be read if it belonged to the database's owner. */
static void read_own(void)
{
    copy(in_folder("planted"), in_folder("trace-wal"));
    ENSURE(ct_side_file_exists(in_folder("trace-wal")) && !ct_side_file_of_other(in_folder("trace")));
    sqlite3 *connection = opened_to_read();
    check_word(connection, "false");
    sqlite3_close(connection);
    remove_side_files();
}

static void read_planted(void)
{
    for (int is_late = 0; is_late < 2; is_late++) {
        if (!is_late)
            plant();
        sqlite3 *connection = opened_to_read();
        if (is_late) /* SQLite looks for a log when it begins to read */
            plant();
        check_word(connection, "own");
        sqlite3_close(connection);
        ENSURE(strcmp(ct_side_file_of_other(in_folder("trace")), "-wal") == 0);
        check_owner("trace-wal", OTHER);
        remove_side_files();
    }
}

/* A log that is replaced after the trace was opened is not read, either. */
static void read_replaced(void)
{
    sqlite3_stmt *statement;
    copy(in_folder("planted"), in_folder("trace-wal"));
    sqlite3 *connection = opened_to_read();
    remove_side_files();
    plant();
    ENSURE(sqlite3_prepare_v2(connection, "SELECT word FROM word", -1, &statement, NULL) == SQLITE_CANTOPEN);
    sqlite3_close(connection);
    check_owner("trace-wal", OTHER);
    remove_side_files();
}

static void write_planted(void)
{
    sqlite3 *connection = opened("trace", SQLITE_OPEN_READWRITE);
    plant();
    ENSURE(sqlite3_exec(connection, "UPDATE word SET word = 'new'", NULL, NULL, NULL) == SQLITE_CANTOPEN);
    check_owner("trace-wal", OTHER);
    remove_side_files();
    execute(connection, "UPDATE word SET word = 'own'");
    check_word(connection, "own");
    sqlite3_close(connection);
    remove_side_files();
}

/* Root gives side files that it creates to the database's owner, but no other file. */
static void as_root_in_database_of_other(void)
{
    ENSURE(chown(in_folder("trace"), OTHER, OTHER) == 0);
    sqlite3 *connection = opened("trace", SQLITE_OPEN_READWRITE);
    execute(connection, "UPDATE word SET word = 'own'");
    check_owner("trace-wal", OTHER);
    check_owner("trace-shm", OTHER);
    sqlite3_close(connection);
    remove_side_files();
    for (int is_link = 0; is_link < 2; is_link++) {
        copy(in_folder("planted"), in_folder("roots"));
        ENSURE((is_link ? symlink(in_folder("roots"), in_folder("trace-wal"))
                        : link(in_folder("roots"), in_folder("trace-wal"))) == 0);
        connection = opened_to_read();
        check_word(connection, "own");
        sqlite3_close(connection);
        connection = opened("trace", SQLITE_OPEN_READONLY);
        ENSURE(sqlite3_exec(connection, "SELECT word FROM word", NULL, NULL, NULL) == SQLITE_CANTOPEN);
        sqlite3_close(connection);
        check_owner("roots", 0);
        remove_side_files();
    }
    ENSURE(chown(in_folder("trace"), 0, 0) == 0);
}

/* Users may link files that they may write, even if these belong to others. */
static void second_name(void)
{
    copy(in_folder("planted"), in_folder("roots"));
    ENSURE(link(in_folder("roots"), in_folder("trace-wal")) == 0);
    sqlite3 *connection = opened_to_read();
    check_word(connection, "own");
    sqlite3_close(connection);
    ENSURE(strcmp(ct_side_file_of_other(in_folder("trace")), "-wal") == 0);
    remove_side_files();
}

static void not_a_file(void)
{
    ENSURE(symlink(in_folder("planted"), in_folder("trace-wal")) == 0 &&
           mkfifo(in_folder("trace-journal"), 0666) == 0);
    sqlite3 *connection = opened_to_read();
    check_word(connection, "own");
    sqlite3_close(connection);
    remove_side_files();
}

/* A database may have a name that looks like a side file's. */
static void only_a_name(void)
{
    copy(in_folder("trace"), in_folder("my-journal"));
    sqlite3 *connection = opened("my-journal", SQLITE_OPEN_READWRITE);
    execute(connection, "PRAGMA journal_mode = DELETE; UPDATE word SET word = 'own'");
    check_word(connection, "own");
    sqlite3_close(connection);
}

typedef int open_function(const char *path, int flags, int mode);
static open_function *guarded_open;

/* Exchanges the folder "inner" for another user's link to the folder "victim" when SQLite is about to open a
 * database's -shm file. */
static int exchange_and_open(const char *path, int flags, int mode)
{
    static bool is_exchanged;
    if (strstr(path, "-shm") && !is_exchanged) {
        is_exchanged = true;
        ENSURE(rename(in_folder("inner"), in_folder("away")) == 0);
        ENSURE(symlink(in_folder("victim"), in_folder("inner")) == 0 &&
               lchown(in_folder("inner"), OTHER, OTHER) == 0);
    }
    return guarded_open(path, flags, mode);
}

static void exchanged_folder(void)
{
    static const char *const names[] = { "inner", "inner/trace", "inner/trace-wal" };
    sqlite3_vfs *files = sqlite3_vfs_find(NULL);
    ENSURE(mkdir(in_folder("inner"), 0755) == 0 && mkdir(in_folder("victim"), 0700) == 0);
    copy(in_folder("trace"), in_folder("inner/trace"));
    copy(in_folder("planted"), in_folder("inner/trace-wal"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ENSURE(chown(in_folder(names[i]), OTHER, OTHER) == 0);
    sqlite3 *connection = opened("inner/trace", SQLITE_OPEN_READONLY);
    guarded_open = (open_function *)(uintptr_t)files->xGetSystemCall(files, "open");
    files->xSetSystemCall(files, "open", (sqlite3_syscall_ptr)exchange_and_open);
    ENSURE(sqlite3_exec(connection, "SELECT word FROM word", NULL, NULL, NULL) == SQLITE_CANTOPEN);
    files->xSetSystemCall(files, "open", (sqlite3_syscall_ptr)guarded_open);
    sqlite3_close(connection);
    ENSURE(rmdir(in_folder("victim")) == 0); /* it is empty */
    ENSURE(unlink(in_folder("inner")) == 0 && unlink(in_folder("away/trace")) == 0 &&
           unlink(in_folder("away/trace-wal")) == 0 && rmdir(in_folder("away")) == 0);
}

/* The daemon skips the database at the front, and leaves the cache at the end out of a trace's size. */
static void parts(void)
{
    ENSURE(strcmp(ct_database_parts[0], "") == 0);
    ENSURE(strcmp(ct_database_parts[CT_DATABASE_PARTS - 1], "-shm") == 0);
    for (size_t i = 1; i < CT_DATABASE_PARTS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "trace%s", ct_database_parts[i]);
        ENSURE(symlink("nowhere", in_folder(name)) == 0);
        ENSURE(strcmp(ct_side_file_of_other(in_folder("trace")), ct_database_parts[i]) == 0);
        ENSURE(unlink(in_folder(name)) == 0);
    }
}

int main(void)
{
    ENSURE(mkdtemp(folder));
    ct_side_files_guard();
    make_files();
    parts();
    read_own();
    not_a_file();
    second_name();
    only_a_name();
    if (geteuid() == 0) {
        read_planted();
        read_replaced();
        write_planted();
        as_root_in_database_of_other();
        exchanged_folder();
    } else {
        puts("not tried: files of another user: needs root");
    }
    static const char *const names[] = { "trace", "copy", "planted", "roots", "my-journal" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(in_folder(names[i]));
    ENSURE(rmdir(folder) == 0);
    return 0;
}
