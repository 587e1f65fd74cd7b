/* Measures how fast the collector turns the contents of rings into committed rows. Segments like the hook's
 * are filled with the calls of a PyTorch training loop. The collector's own code reads, merges and stores
 * these calls on one thread. These rounds alternate with a bare INSERT … SELECT of the same rows from arrays,
 * and with an INSERT of only the `call` table's rows. Prints `variant round value`. The values are rows per
 * second, and the bytes per call in the collector's database. */
#include "batch.h"
#include "page_cache.h"
#include "shm_segment.h"
#include "shm_source.h"
#include "training.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUNDS = 5, LANES = 16, CALLS_PER_LANE = 120000, CALLS = LANES * CALLS_PER_LANE };

static void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static double seconds_since(uint64_t start_ns)
{
    return (double)(ct_monotonic_ns() - start_ns) / 1e9;
}

static void run_collector(const char *folder, int round, const char *variant, bool by_two)
{
    char path[4096], segment[64], message[CT_MESSAGE_BYTES];
    snprintf(path, sizeof(path), "%s/%s.%d.db", folder, variant, round);
    snprintf(segment, sizeof(segment), CT_SHM_DIR "/cudatrace-bench.%d", getpid());
    /* Make the calls so old that they are already before the watermark when the first batch is read. */
    training_write(segment, &(struct training_segment){ .first_ns = ct_monotonic_ns() - UINT64_C(3000000000),
                                                        .gap_ns = 2200,
                                                        .lanes = LANES,
                                                        .calls_per_lane = CALLS_PER_LANE });

    static struct ct_control control;
    control = (struct ct_control){ .clock = CT_CLOCK_MONOTONIC };
    static struct ct_shm shm;
    struct ct_collection collection = { .sources = &shm.source };
    struct ct_shm_process *process = NULL;
    const char *reason;
    ct_shm_init(&shm, "/nowhere", &control);
    if (ct_store_open(path, "bench", &collection.ledger.store, message) != 0 ||
        ct_shm_open(segment, NULL, &process, &reason) != 0)
        die("open");
    ct_shm_adopt(&shm, process);
    if (by_two)
        ct_store_commit_by_thread(collection.ledger.store);

    struct ct_report report = { 0 };
    bool is_done;
    const uint64_t start_ns = ct_monotonic_ns();
    do {
        report = (struct ct_report){ .rows_total = report.rows_total };
        is_done = ct_batch_make(&collection, &(struct ct_request){ 0 }, &report);
    } while (!is_done || (report.more && !report.error[0]));
    const double seconds = seconds_since(start_ns);
    if (report.error[0] || report.rows_total != CALLS) {
        fprintf(stderr, "%s: %llu rows of %d\n", report.error, (unsigned long long)report.rows_total, CALLS);
        exit(EXIT_FAILURE);
    }
    ct_shm_close(ct_shm_finish(&shm), true);
    ct_store_close(collection.ledger.store);
    ct_ledger_finish(&collection.ledger);
    struct stat status;
    if (stat(path, &status) != 0)
        die(path);
    printf("%s %d %.0f\n", variant, round, CALLS / seconds);
    if (!by_two)
        printf("bytes_per_call %d %.2f\n", round, (double)status.st_size / CALLS);
}

/* ---- the floor: only arrays as tables ---- */

/* A table of the collector's database, held in memory as an array. The value -1 means NULL. */
static struct plain {
    const char *name, *columns, *read;
    int column_count;
    int64_t *value, rows;
    int64_t from, to; /* the rows to insert next */
} plains[] = {
    { .name = "call",
      .columns = "end_ns, duration_ns, site_id, bytes",
      .read = "SELECT end_ns, duration_ns, site_id, coalesce(bytes, -1) FROM call ORDER BY end_ns",
      .column_count = 4 },
    { .name = "launch",
      .columns = "call_id, shape_id, process_id",
      .read = "SELECT call_id, shape_id, process_id FROM launch ORDER BY call_id",
      .column_count = 3 },
    { .name = "transfer",
      .columns = "call_id, route_id, source, destination",
      .read = "SELECT call_id, route_id, coalesce(source, -1), coalesce(destination, -1) FROM transfer"
              " ORDER BY call_id",
      .column_count = 4 },
    { .name = "call_subject",
      .columns = "call_id, subject_id",
      .read = "SELECT call_id, subject_id FROM call_subject ORDER BY call_id",
      .column_count = 2 },
};
enum { PLAINS = sizeof(plains) / sizeof(plains[0]) };

struct plain_table {
    sqlite3_vtab base;
    struct plain *plain;
};
struct plain_cursor {
    sqlite3_vtab_cursor base;
    const struct plain *plain;
    int64_t at;
};

static int plain_connect(sqlite3 *connection, void *client, int argc, const char *const *argv,
                         sqlite3_vtab **table, char **error)
{
    (void)argc, (void)argv, (void)error;
    struct plain_table *plain = sqlite3_malloc(sizeof(*plain));
    *plain = (struct plain_table){ .plain = client };
    *table = &plain->base;
    char declaration[128];
    snprintf(declaration, sizeof(declaration), "CREATE TABLE x (%s)", plain->plain->columns);
    return sqlite3_declare_vtab(connection, declaration);
}
static int plain_disconnect(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}
static int plain_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table, (void)info;
    return SQLITE_OK;
}
static int plain_open(sqlite3_vtab *table, sqlite3_vtab_cursor **result)
{
    struct plain_cursor *cursor = sqlite3_malloc(sizeof(*cursor));
    *cursor = (struct plain_cursor){ .plain = ((struct plain_table *)table)->plain };
    *result = &cursor->base;
    return SQLITE_OK;
}
static int plain_close(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}
static int plain_filter(sqlite3_vtab_cursor *base, int i, const char *s, int argc, sqlite3_value **argv)
{
    (void)i, (void)s, (void)argc, (void)argv;
    struct plain_cursor *cursor = (struct plain_cursor *)base;
    cursor->at = cursor->plain->from;
    return SQLITE_OK;
}
static int plain_next(sqlite3_vtab_cursor *cursor)
{
    ((struct plain_cursor *)cursor)->at++;
    return SQLITE_OK;
}
static int plain_eof(sqlite3_vtab_cursor *base)
{
    const struct plain_cursor *cursor = (struct plain_cursor *)base;
    return cursor->at >= cursor->plain->to;
}
static int plain_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct plain_cursor *cursor = (struct plain_cursor *)base;
    const int64_t value = cursor->plain->value[cursor->at * cursor->plain->column_count + column];
    if (value >= 0)
        sqlite3_result_int64(context, value);
    return SQLITE_OK;
}
static int plain_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
    *rowid = ((struct plain_cursor *)cursor)->at;
    return SQLITE_OK;
}
static const sqlite3_module plain_module = { .xConnect = plain_connect,
                                             .xBestIndex = plain_best_index,
                                             .xDisconnect = plain_disconnect,
                                             .xOpen = plain_open,
                                             .xClose = plain_close,
                                             .xFilter = plain_filter,
                                             .xNext = plain_next,
                                             .xEof = plain_eof,
                                             .xColumn = plain_column,
                                             .xRowid = plain_rowid };

/* Loads the rows of the first round's database into the arrays. */
static void load_plains(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/collector.0.db", folder);
    sqlite3 *connection;
    sqlite3_stmt *statement;
    if (sqlite3_open(path, &connection) != SQLITE_OK)
        die(path);
    for (int p = 0; p < PLAINS; p++) {
        struct plain *plain = &plains[p];
        plain->value = calloc(CALLS, (size_t)plain->column_count * sizeof(*plain->value));
        if (!plain->value || sqlite3_prepare_v2(connection, plain->read, -1, &statement, NULL) != SQLITE_OK)
            die("the rows to compare with");
        for (int64_t *value = plain->value; plain->rows < CALLS && sqlite3_step(statement) == SQLITE_ROW;
             plain->rows++) {
            for (int column = 0; column < plain->column_count; column++)
                *value++ = sqlite3_column_int64(statement, column);
        }
        sqlite3_finalize(statement);
    }
    sqlite3_close(connection);
    if (plains[0].rows != CALLS)
        die("the rows to compare with are not all there");
}

/* Stores the same rows as the collector, but without using the collector's code: inserts the first `tables`
 * arrays, in batches as large as the collector's. */
static void run_bare(const char *folder, int round, int tables, const char *variant)
{
    enum { BATCH = 250000 };
    char path[4096], message[CT_MESSAGE_BYTES], sql[256];
    snprintf(path, sizeof(path), "%s/%s.%d.db", folder, variant, round);
    /* Use the same tables and settings as the collector: the store creates the tables, and a new connection
     * with equal settings fills them. */
    struct ct_store *store;
    if (ct_store_open(path, "bench", &store, message) != 0)
        die(message);
    ct_store_close(store);
    sqlite3 *connection;
    sqlite3_stmt *insert[PLAINS];
    bool fine =
        sqlite3_open_v2(path, &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK &&
        sqlite3_exec(connection,
                     "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4096;"
                     "PRAGMA cache_size = -8192",
                     NULL, NULL, NULL) == SQLITE_OK;
    for (int p = 0; p < tables && fine; p++) {
        struct plain *plain = &plains[p];
        plain->to = 0;
        snprintf(sql, sizeof(sql), "plain_%s", plain->name);
        fine = sqlite3_create_module(connection, sql, &plain_module, plain) == SQLITE_OK;
        snprintf(sql, sizeof(sql), "INSERT INTO %s (%s) SELECT %s FROM plain_%s", plain->name, plain->columns,
                 plain->columns, plain->name);
        fine = fine && sqlite3_prepare_v2(connection, sql, -1, &insert[p], NULL) == SQLITE_OK;
    }
    const uint64_t start_ns = ct_monotonic_ns();
    while (fine && plains[0].to < CALLS) {
        const int64_t calls = plains[0].to + BATCH < CALLS ? plains[0].to + BATCH : CALLS;
        const int64_t last = plains[0].value[(calls - 1) * plains[0].column_count];
        fine = sqlite3_exec(connection, "BEGIN", NULL, NULL, NULL) == SQLITE_OK;
        for (int p = 0; p < tables && fine; p++) {
            struct plain *plain = &plains[p];
            plain->from = plain->to;
            while (plain->to < plain->rows && plain->value[plain->to * plain->column_count] <= last)
                plain->to++;
            fine = sqlite3_step(insert[p]) == SQLITE_DONE;
            sqlite3_reset(insert[p]);
        }
        fine = fine && sqlite3_exec(connection, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
    }
    if (!fine)
        die(sqlite3_errmsg(connection));
    printf("%s %d %.0f\n", variant, round, CALLS / seconds_since(start_ns));
    for (int p = 0; p < tables; p++)
        sqlite3_finalize(insert[p]);
    sqlite3_close(connection);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("Usage: collector_rate FOLDER MIX.tsv\n", stderr);
        return 2;
    }
    training_read(argv[2]);
    ct_page_cache_install();
    ct_guard_install();
    for (int round = 0; round < ROUNDS; round++) {
        run_collector(argv[1], round, "collector", false);
        run_collector(argv[1], round, "by_two", true);
        if (round == 0)
            load_plains(argv[1]);
        run_bare(argv[1], round, PLAINS, "bare");
        run_bare(argv[1], round, 1, "bare_calls");
    }
    for (int p = 0; p < PLAINS; p++)
        free(plains[p].value);
    return EXIT_SUCCESS;
}
