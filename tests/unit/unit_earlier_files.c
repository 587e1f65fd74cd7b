/* Tests that an earlier file of the trace is checked before the daemon queries or removes it. The file may
 * have been replaced by a file of another trace, a FIFO, or a link to the current file. */
#include "earlier_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CALL_ID = 1000, UNTIL_NS = 5000 };

static char path[128], second_path[128], other_path[128];
static struct ct_database first, second, other;
static int removed, refused;

static void expect(const char *what, bool is_so)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    exit(EXIT_FAILURE);
}

static void run(struct ct_database *database, const char *sql)
{
    expect(sql, sqlite3_exec(database->connection, sql, NULL, NULL, NULL) == SQLITE_OK);
}

static void put_call(struct ct_database *database)
{
    run(database, "INSERT INTO call (end_ns, duration_ns, site_id) VALUES (1000, 1, 1)");
}

static bool has(uint64_t call_id)
{
    struct ct_earlier_files earlier = { 0 };
    ct_earlier_files_begin(&earlier, UNTIL_NS);
    const bool has = ct_earlier_files_has(&earlier, &second, call_id);
    ct_earlier_files_begin(&earlier, 0);
    return has;
}

static void on_removed(const char *gone, int error)
{
    (void)gone;
    removed += error == 0;
    refused += error == EACCES;
}

/* Prunes the trace as if there were no room for any file. Returns the number of files that were removed. */
static int prune(void)
{
    removed = 0;
    ct_database_prune(&second, 1, 0, on_removed);
    return removed;
}

/* Acts as the given user. Only a process that may be traced can be checked for leaks, and a change of the
 * user ends that. */
static void act_as(uid_t user)
{
    expect("a change of the user", seteuid(user) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
}

/* Checks a file whose folder does not permit its removal. Root may remove it anyway, and so acts as another
 * user. */
static void refuse(const char *folder)
{
    enum { OTHER = 65534 };
    const uid_t user = getuid();
    if (user == 0) {
        expect("other owners", chown(folder, OTHER, OTHER) == 0 && chown(path, OTHER, OTHER) == 0);
        act_as(OTHER);
    }
    expect("a folder without permission", chmod(folder, 0500) == 0);
    expect("a file that cannot be removed", prune() == 0 && refused == 1 && has(CALL_ID));
    expect("a folder with permission", chmod(folder, 0700) == 0);
    expect("a file that can be removed", prune() == 1);
    act_as(user);
}

static void make(void)
{
    char message[CT_MESSAGE_BYTES] = "";
    struct ct_origin origin;
    ct_origin_here(&origin, "test");
    ct_database_open(&first, path, &origin, message);
    expect(message, first.connection != NULL);
    put_call(&first);
    ct_database_open(&other, other_path, &origin, message);
    expect(message, other.connection != NULL);
    put_call(&other);
    ct_database_close(&other);
    expect(message, ct_database_follow(&first, &second, message) == 0);
    expect("the files are of one series", strcmp(first.series, second.series) == 0 && first.series[0]);
    ct_database_close(&first);
}

int main(void)
{
    char folder[] = "/tmp/cudatrace-earlier.XXXXXX", away[128], side[140];
    expect("a folder", mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/trace.db", folder);
    snprintf(second_path, sizeof(second_path), "%s/trace.2.db", folder);
    snprintf(other_path, sizeof(other_path), "%s/other.db", folder);
    snprintf(away, sizeof(away), "%s/away.db", folder);
    make();
    expect("a call of the earlier file", has(CALL_ID));
    expect("a call that it has not", !has(CALL_ID + 1));

    rename(path, away);
    expect("nothing is there", !has(CALL_ID) && prune() == 0);
    expect("a link of ours", symlink(away, path) == 0 && has(CALL_ID));
    unlink(path);
    /* Remove the write-ahead log and its index, because a read-only connection does not remove them. */
    snprintf(side, sizeof(side), "%s-wal", away);
    unlink(side);
    snprintf(side, sizeof(side), "%s-shm", away);
    unlink(side);
    expect("another trace's file", rename(other_path, path) == 0 && !has(CALL_ID) && prune() == 0);
    unlink(path);
    put_call(&second);
    expect("a link to the file in use", symlink(second_path, path) == 0 && !has(CALL_ID) && prune() == 0);
    expect("it is still there", access(second_path, F_OK) == 0);
    unlink(path);
    expect("a FIFO", mkfifo(path, 0600) == 0 && !has(CALL_ID) && prune() == 0);
    unlink(path);
    expect("a second name", link(away, path) == 0 && !has(CALL_ID) && prune() == 0);
    unlink(path);
    expect("the file itself", rename(away, path) == 0 && has(CALL_ID));
    refuse(folder);
    expect("it is gone", access(path, F_OK) != 0);

    ct_database_close(&second);
    unlink(second_path);
    return rmdir(folder) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
