/* Tests the checkpointer. During continuous commits, the checkpoint thread repeatedly copies and restarts the
 * log. If a reader keeps the log from restarting, the log grows, and no row is lost. The log restarts once
 * the reader has finished. */
#include "checkpoint.h"
#include "process_rows.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMMITS_MAX = 4000, ROWS = 600, LOG_PAGES = 4096 };

static struct ct_store *store;
static struct ct_checkpointer *checkpointer;
static sqlite3 *reader;
static uint32_t names; /* number of rows that have been stored */

static void fail(const char *what, long long seen)
{
    fprintf(stderr, "%s: %lld; %s, %s\n", what, seen, ct_store_error(store), sqlite3_errmsg(reader));
    exit(EXIT_FAILURE);
}

static long long ask(const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(reader, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        fail(sql, -1);
    const long long value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* Commits a batch of rows that fill a few pages. Returns the number of pages in the log after the commit. */
static uint32_t commit(void)
{
    if (ct_store_begin(store) != 0)
        fail("begin", -1);
    for (uint32_t i = 0; i < ROWS; i++) {
        char key[512];
        snprintf(key, sizeof(key), "%0500u", names++);
        if (ct_store_set_meta(store, key, (int64_t)i) != 0)
            fail("a row", i);
    }
    if (ct_store_commit(store) != 0)
        fail("commit", -1);
    ct_checkpointer_tend(checkpointer);
    return ct_store_log_pages(store);
}

/* Keeps committing until the log has restarted `times` times. Returns the largest number of pages that the
 * log contained. */
static uint32_t commit_until_anew(int times)
{
    uint32_t most = 0, before = 0;
    for (int i = 0; i < COMMITS_MAX; i++) {
        const uint32_t pages = commit();
        if (pages < before && --times == 0)
            return most;
        most = pages > most ? pages : most;
        before = pages;
    }
    fail("the log did not begin anew; pages", before);
    return 0;
}

static void check_rows(void)
{
    const long long rows = ask("SELECT count(*) FROM meta WHERE length(key) = 500");
    if (rows != names)
        fail("rows in the database", rows);
}

int main(void)
{
    char folder[] = "/tmp/cudatrace-unit-XXXXXX", path[64], message[CT_MESSAGE_BYTES];
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    snprintf(path, sizeof(path), "%s/trace.db", folder);
    if (ct_store_open(path, "unit", &store, message) != 0) {
        fprintf(stderr, "%s\n", message);
        return EXIT_FAILURE;
    }
    checkpointer = ct_checkpointer_create(store, CT_CHECKPOINT_PAGES);
    if (!checkpointer || sqlite3_open_v2(path, &reader, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        fail("no checkpointer or no reader", -1);

    commit_until_anew(3);
    check_rows();

    /* A reader is in the middle of a query. */
    sqlite3_exec(reader, "BEGIN", NULL, NULL, NULL);
    const long long seen = ask("SELECT count(*) FROM meta");
    uint32_t pages = 0;
    while (pages < 4 * LOG_PAGES)
        pages = commit();
    if (ask("SELECT count(*) FROM meta") != seen)
        fail("a reader's rows changed", seen);
    sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL);
    commit_until_anew(1);
    check_rows();

    sqlite3_close(reader);
    ct_checkpointer_destroy(checkpointer);
    ct_store_close(store);
    struct stat status;
    char log[80];
    snprintf(log, sizeof(log), "%s-wal", path);
    if (stat(log, &status) == 0 && status.st_size > 0) {
        fprintf(stderr, "the log has %lld bytes after the end\n", (long long)status.st_size);
        return EXIT_FAILURE;
    }
    unlink(log);
    unlink(path);
    rmdir(folder);
    return EXIT_SUCCESS;
}
