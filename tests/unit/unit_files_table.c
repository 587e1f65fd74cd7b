/* Tests tables over all files of a trace. They have the rows of their query, in its order, and a statement
 * reads only the rows that it needs, which the number of SQLite's steps shows. */
#include "files_table.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 20000, FEW_STEPS = 4000 };

static sqlite3 *connection;
static long long steps;

static void expect(const char *what, bool is_so)
{
    if (is_so)
        return;
    fprintf(stderr, "%s (%s)\n", what, sqlite3_errmsg(connection));
    exit(EXIT_FAILURE);
}

static void run(sqlite3 *on, const char *sql)
{
    if (sqlite3_exec(on, sql, NULL, NULL, NULL) != SQLITE_OK)
        expect(sql, false);
}

static int count_step(void *data)
{
    (void)data;
    steps++;
    return 0;
}

/* Returns the rows of a statement as text, and counts the steps. */
static char *answer(const char *sql)
{
    sqlite3_stmt *statement = NULL;
    sqlite3_str *text = sqlite3_str_new(NULL);
    steps = 0;
    if (sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) != SQLITE_OK)
        expect(sql, false);
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int c = 0; c < sqlite3_column_count(statement); c++)
            sqlite3_str_appendf(text, "%s|", (const char *)sqlite3_column_text(statement, c));
    }
    expect(sql, rc == SQLITE_DONE);
    sqlite3_finalize(statement);
    char *all = sqlite3_str_finish(text);
    return all ? all : sqlite3_mprintf("");
}

/* Checks that a statement returns the same from the table as from the query. `%s` is the name of either. */
static void expect_same(const char *format)
{
    char *of_table = sqlite3_mprintf(format, "thing_of_files", "thing_of_files"),
         *of_query = sqlite3_mprintf(format, "thing", "thing");
    char *seen = answer(of_table), *wanted = answer(of_query);
    expect(format, strcmp(seen, wanted) == 0);
    sqlite3_free(of_table);
    sqlite3_free(of_query);
    sqlite3_free(seen);
    sqlite3_free(wanted);
}

static void expect_few_steps(const char *sql, const char *wanted)
{
    char *seen = answer(sql);
    expect(sql, strcmp(seen, wanted) == 0);
    expect("the steps of this statement are few", steps < FEW_STEPS);
    sqlite3_free(seen);
}

/* Creates two files with every second row each, so that the order of their rows is mixed. */
static void create_files(const char *newest, const char *oldest)
{
    char *attach = sqlite3_mprintf("ATTACH %Q AS earlier", oldest);
    expect("a connection", sqlite3_open(newest, &connection) == SQLITE_OK);
    run(connection, "PRAGMA journal_mode = WAL");
    run(connection, attach);
    sqlite3_free(attach);
    for (int file = 0; file < 2; file++) {
        char *sql = sqlite3_mprintf(
            "CREATE TABLE %s.row (name TEXT, call_id INTEGER PRIMARY KEY);"
            "WITH RECURSIVE n(n) AS (SELECT %d UNION ALL SELECT n + 2 FROM n WHERE n + 2 < %d)"
            "INSERT INTO %s.row SELECT 'row ' || n, n FROM n",
            file ? "earlier" : "main", file, ROWS, file ? "earlier" : "main");
        run(connection, sql);
        sqlite3_free(sql);
    }
    run(connection,
        "CREATE TEMP VIEW thing AS SELECT call_id, name, call_id + 1 AS next FROM main.row UNION ALL "
        "SELECT call_id, name, call_id + 1 FROM earlier.row;"
        "CREATE TEMP TABLE few (id); INSERT INTO few VALUES (3), (4), (5000), (19999), (20000), (NULL)");
}

static void check_rows(void)
{
    static const char *const statements[] = {
        "SELECT * FROM %s",
        "SELECT * FROM %s ORDER BY call_id",
        "SELECT name FROM %s ORDER BY call_id DESC LIMIT 5",
        "SELECT * FROM %s WHERE call_id > 19990 AND call_id <= 19997",
        "SELECT * FROM %s WHERE call_id BETWEEN '5' AND 7.5",
        "SELECT * FROM %s WHERE call_id = NULL OR call_id = '12' OR call_id < 3 OR call_id >= 19998 "
        "ORDER BY name",
        "SELECT * FROM %s WHERE call_id IN (SELECT id FROM few) ORDER BY call_id DESC",
        "SELECT * FROM %s WHERE call_id > 5 AND (call_id BETWEEN 4 AND 8 OR call_id IN (SELECT id FROM few) "
        "OR call_id < 7) ORDER BY name",
        "SELECT count(*), max(next) FROM %s WHERE name = 'ROW 7' COLLATE NOCASE",
        "SELECT * FROM few LEFT JOIN %s ON call_id = id",
        "SELECT id, (SELECT name FROM %s WHERE call_id > id ORDER BY call_id LIMIT 1) FROM few",
        "SELECT count(*), sum(a.next = b.call_id) FROM %s AS a JOIN %s AS b ON b.call_id = a.next",
        "SELECT typeof(call_id), typeof(name), typeof(next) FROM %s WHERE next = 8",
    };
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
        expect_same(statements[i]);
}

/* In all of these, SQLite would copy the query's rows for the join. */
static void check_steps(void)
{
    expect_few_steps("SELECT count(*), max(name) FROM few CROSS JOIN thing_of_files ON call_id = id",
                     "4|row 5000|");
    expect_few_steps(
        "SELECT id, count(*) FROM few CROSS JOIN thing_of_files ON call_id BETWEEN id - 2 AND id "
        "GROUP BY id ORDER BY id",
        "3|3|4|3|5000|3|19999|3|20000|2|");
    expect_few_steps(
        "SELECT id, (SELECT sum(call_id) FROM thing_of_files WHERE call_id BETWEEN id - 1 AND id) "
        "FROM few WHERE id < 5",
        "3|5|4|7|");
    expect_few_steps("SELECT call_id FROM thing_of_files ORDER BY call_id DESC LIMIT 1", "19999|");
}

/* A statement must read the same rows until its end, even if another process adds some. */
static void check_state(const char *newest)
{
    static const char sql[] =
        "SELECT (SELECT count(*) FROM thing_of_files WHERE call_id >= column1) FROM (VALUES (0), (-1))";
    sqlite3_stmt *statement = NULL;
    sqlite3 *writer = NULL;
    expect("a writer", sqlite3_open(newest, &writer) == SQLITE_OK);
    expect(sql, sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) == SQLITE_OK);
    expect(sql, sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) == ROWS);
    run(writer, "INSERT INTO row VALUES ('another', 30000)");
    expect("the same rows",
           sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) == ROWS);
    sqlite3_finalize(statement);
    char *all = answer("SELECT count(*) FROM thing_of_files");
    expect("then all rows", strcmp(all, "20001|") == 0);
    sqlite3_free(all);
    sqlite3_close(writer);
}

int main(void)
{
    char newest[] = "/tmp/cudatrace-files-table.XXXXXX", side[sizeof(newest) + 8];
    const int fd = mkstemp(newest);
    expect("a file", fd >= 0 && close(fd) == 0);
    create_files(newest, ":memory:");
    sqlite3_progress_handler(connection, 1, count_step, NULL);
    expect("a table that cannot be read is added",
           ct_files_table_add(connection, "thing_of_files", sqlite3_mprintf("SELECT * FROM missing"), NULL) ==
               SQLITE_OK);
    expect("its error",
           sqlite3_exec(connection, "SELECT * FROM thing_of_files", NULL, NULL, NULL) != SQLITE_OK &&
               strcmp(sqlite3_errmsg(connection), "no such table: missing") == 0);
    expect("one without a key",
           ct_files_table_add(connection, "thing_of_files", sqlite3_mprintf("SELECT * FROM thing"), NULL) ==
               SQLITE_OK);
    expect_same("SELECT * FROM %s");
    expect_same("SELECT name FROM %s WHERE call_id > 5 ORDER BY call_id DESC LIMIT 3");
    expect("one with a key",
           ct_files_table_add(connection, "thing_of_files", sqlite3_mprintf("SELECT * FROM thing"),
                              "call_id") == SQLITE_OK);
    check_rows();
    check_steps();
    check_state(newest);
    expect("no statement is left", sqlite3_close(connection) == SQLITE_OK);
    unlink(newest);
    snprintf(side, sizeof(side), "%s-wal", newest);
    unlink(side);
    snprintf(side, sizeof(side), "%s-shm", newest);
    unlink(side);
    return 0;
}
