/* Tests a trace that consists of several files. A daemon removes the oldest files while a reader is opening
 * or reading the trace. */
#include "database.h"
#include "series.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILES = 3 };

static char path[FILES][160];
static struct ct_database file[FILES];

static void expect(const char *what, bool is_so)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    exit(EXIT_FAILURE);
}

/* Removes a file the way the daemon does. */
static void remove_file(int i)
{
    char side[200];
    ct_database_close(&file[i]);
    expect("removed", unlink(path[i]) == 0);
    snprintf(side, sizeof(side), "%s-wal", path[i]);
    unlink(side);
    snprintf(side, sizeof(side), "%s-shm", path[i]);
    unlink(side);
}

static void put_process(struct ct_database *database, int number)
{
    char sql[200];
    snprintf(sql, sizeof(sql),
             "INSERT INTO process (process_id, pid, start_ticks, image_ns, uid, started_ns, state) "
             "VALUES (%d, %d, 1, 1, 1, 1, 'exited')",
             number, number);
    if (sqlite3_exec(database->connection, sql, NULL, NULL, NULL) != SQLITE_OK)
        expect(sqlite3_errmsg(database->connection), false);
}

static int rows(sqlite3 *connection)
{
    sqlite3_stmt *statement = NULL;
    int count = -1;
    if (sqlite3_prepare_v2(connection, "SELECT count(*) FROM processes", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        count = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return count;
}

int main(void)
{
    char folder[] = "/tmp/cudatrace-series.XXXXXX", message[CT_MESSAGE_BYTES] = "";
    struct ct_origin origin;
    expect("a folder", mkdtemp(folder) != NULL);
    for (int i = 0; i < FILES; i++)
        snprintf(path[i], sizeof(path[i]), i == 0 ? "%s/trace.db" : "%s/trace.%d.db", folder, i + 1);
    ct_origin_here(&origin, "test");
    ct_database_open(&file[0], path[0], &origin, message);
    expect(message, file[0].connection != NULL);
    for (int i = 1; i < FILES; i++)
        expect(message, ct_database_follow(&file[i - 1], &file[i], message) == 0);
    for (int i = 0; i < FILES; i++)
        put_process(&file[i], i + 1);

    static struct ct_series found;
    sqlite3 *connection = NULL;
    expect("the files are found", ct_series_find(path[0], &found) && found.files == FILES);
    expect("they are opened", ct_series_open(&found, &connection) == SQLITE_OK);
    expect("all are read", ct_series_files(connection) == FILES && rows(connection) == FILES);
    sqlite3_close(connection);

    if (geteuid() == 0) {
        enum { OTHER = 65534 };
        expect("a file of another user", chown(path[FILES - 1], OTHER, OTHER) == 0);
        expect("it is left out", ct_series_find(path[0], &found) && found.files == FILES - 1);
        expect("it is the trace's again",
               chown(path[FILES - 1], 0, 0) == 0 && ct_series_find(path[0], &found));
    }

    expect("opened, and not yet read", ct_series_open(&found, &connection) == SQLITE_OK);
    remove_file(0);
    expect("what is open stays readable", rows(connection) == FILES);
    sqlite3_close(connection);

    expect("the oldest is gone", ct_series_open(&found, &connection) == SQLITE_OK);
    expect("the others are read", ct_series_files(connection) == FILES - 1 && rows(connection) == FILES - 1);
    sqlite3_close(connection);

    remove_file(1);
    remove_file(2);
    rmdir(folder);
    return 0;
}
