#include "page_loader.h"

#include "log.h"
#include "page_builder.h"
#include "page_cache.h"
#include "room.h"
#include "statements.h"
#include "store_state.h"
#include "test_point.h"

#include <stdio.h>
#include <string.h>

enum {
    /* If a record is longer than this, SQLite stores a part of it on other pages. */
    RECORD_BYTES_MAX = CT_LEAF_BYTES - 35,
    FILLER_BYTES_MAX = RECORD_BYTES_MAX - 4,
};
/* The minimum number of rows for which the loader is used. The last page is usually half empty, so there must
 * be enough other pages. The daemons in tests/faults use a lower value. */
#ifndef CT_PAGE_LOADER_ROWS_MIN
#define CT_PAGE_LOADER_ROWS_MIN 2000
#endif

const struct ct_loaded_table ct_loaded_calls = { "call", "duration_ns,site_id,bytes,end_ns", CT_SQL_fill_call,
                                                 CT_SQL_unfill_call, CT_SQL_newest_call };
const struct ct_loaded_table ct_loaded_launches = { "launch", "shape_id,process_id,call_id",
                                                    CT_SQL_fill_launch, CT_SQL_unfill_launch,
                                                    CT_SQL_newest_launch };
const struct ct_loaded_table ct_loaded_transfers = { "transfer", "route_id,source,destination,call_id",
                                                     CT_SQL_fill_transfer, CT_SQL_unfill_transfer,
                                                     CT_SQL_newest_transfer };
const struct ct_loaded_table ct_loaded_call_subjects = { "call_subject", "subject_id,call_id",
                                                         CT_SQL_fill_call_subject, CT_SQL_unfill_call_subject,
                                                         CT_SQL_newest_call_subject };
const struct ct_loaded_table ct_loaded_gpu_runs = {
    "gpu_run", "gpu_task_id,start_ns,duration_ns,correlation,queued_ns,bytes,run_id", CT_SQL_fill_gpu_run,
    CT_SQL_unfill_gpu_run, CT_SQL_newest_gpu_run
};
static const struct ct_loaded_table *const loaded_tables[] = {
    &ct_loaded_calls,         &ct_loaded_launches, &ct_loaded_transfers,
    &ct_loaded_call_subjects, &ct_loaded_gpu_runs,
};

static int64_t pragma(sqlite3 *connection, const char *sql)
{
    sqlite3_stmt *statement;
    int64_t value = -1;
    if (sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* Sets and logs the reason for storing rows one by one, or "" if they are stored as pages. */
static void say_why(struct ct_store *store, const char *why)
{
    struct ct_page_loader *loader = &store->loader;
    if (strcmp(loader->why, why) == 0)
        return;
    snprintf(loader->why, sizeof(loader->why), "%s", why);
    if (*why)
        ct_log(CT_LOG_feed_off, "calls are stored one by one: %s", why);
    else
        ct_log(CT_LOG_feed_on, "calls are stored a page at a time again");
}

/* Checks and sets up the conditions for loading pages. Pages must stay in the cache until the commit, so
 * SQLite must not spill or map them. A leaf must fill its page, so SQLite must not reserve bytes. Pages must
 * not move, so commits must not vacuum. */
void ct_page_loader_connect(struct ct_store *store)
{
    sqlite3 *connection = store->database.connection;
    int reserved = -1; /* queries the value */
    store->loader.schema = -1;
    store->loader.is_possible =
        ct_page_cache_is_installed() && pragma(connection, "PRAGMA page_size") == CT_LEAF_BYTES &&
        pragma(connection, "PRAGMA auto_vacuum") == 0 && pragma(connection, "PRAGMA mmap_size = 0") <= 0 &&
        sqlite3_exec(connection, "PRAGMA cache_spill = OFF", NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_file_control(connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved) == SQLITE_OK &&
        reserved == 0;
    say_why(store,
            store->loader.is_possible ? "" : "this build of SQLite cannot store them a page at a time");
}

/* Checks that no user has added an index or a column to a table. An added index would not contain the loaded
 * rows. */
static int check_schema(struct ct_store *store)
{
    struct ct_page_loader *loader = &store->loader;
    int64_t schema = 0;
    if (ct_store_ask(store, CT_SQL_schema_version, 0, NULL, 0, NULL, &schema) != 0)
        return -1;
    if (schema == loader->schema)
        return 0;
    char why[sizeof(loader->why)] = "";
    for (size_t i = 0; i < sizeof(loaded_tables) / sizeof(loaded_tables[0]) && !*why; i++) {
        int64_t is_plain = 0;
        if (ct_store_ask(store, CT_SQL_table_is_plain, 0, NULL,
                         CT_TEXTS(loaded_tables[i]->name, loaded_tables[i]->columns), &is_plain) != 0)
            return -1;
        if (!is_plain)
            snprintf(why, sizeof(why),
                     "another program has added an index or a column to the table %s; drop it to store a "
                     "page at a time again",
                     loaded_tables[i]->name);
    }
    loader->schema = schema;
    say_why(store, why);
    return 0;
}

/* Where SQLite put the row that was last inserted. */
enum found { ALONE, AMONG_OTHERS, NOWHERE };

static enum found find_place(const struct ct_page_list *watched, int64_t key, uint8_t **place)
{
    for (size_t i = watched->count; i > 0; i--) {
        int64_t last_key;
        const unsigned rows = ct_leaf_rows(watched->page[i - 1], &last_key);
        if (rows == 0 || last_key != key)
            continue;
        *place = watched->page[i - 1];
        return rows == 1 ? ALONE : AMONG_OTHERS;
    }
    return NOWHERE;
}

/* Returns the filler size that makes a row of NULLs and zeros RECORD_BYTES_MAX long. The record's head has
 * one byte for its own length, two for the filler's type, and one for each other column. */
static int filler_bytes(unsigned columns)
{
    return RECORD_BYTES_MAX - 3 - (int)(columns - 1);
}

/* Makes SQLite allocate a separate page for a leaf. Returns 0 or -1. */
static int make_place(struct ct_store *store, const struct ct_loaded_table *table, unsigned columns,
                      const struct ct_leaf *leaf, enum found *found, uint8_t **place)
{
    static const uint8_t filler[FILLER_BYTES_MAX] = "A page of calls is being written here.";
    struct ct_page_list *watched = &store->loader.watched;
    sqlite3_stmt *fill = ct_store_bind(store, table->fill, CT_VALUES(leaf->last_key));
    sqlite3_bind_blob(fill, 2, filler, filler_bytes(columns), SQLITE_STATIC);
    watched->count = 0;
    ct_page_cache_watch(watched);
    const int error = ct_store_run(store, fill, NULL);
    ct_page_cache_watch(NULL);
    if (error)
        return -1;
    *found = find_place(watched, leaf->last_key, place);
    return *found == ALONE ? 0 : ct_store_do(store, table->unfill, CT_VALUES(leaf->last_key));
}

/* Called if this build of SQLite places pages differently from all known builds. */
static void give_up(struct ct_store *store)
{
    store->loader.is_possible = false;
    say_why(store, "this build of SQLite does not keep its pages at the expected places");
}

static int load_pages(struct ct_store *store, const struct ct_loaded_table *table, unsigned columns,
                      size_t *loaded)
{
    struct ct_page_loader *loader = &store->loader;
    struct ct_page_list *places = &loader->places;
    enum found found = ALONE;
    while (places->count < loader->builder.count) {
        const struct ct_leaf *leaf = &loader->builder.leaf[places->count];
        uint8_t *place = NULL;
        if (!ct_make_room(&places->page, places->count, &places->room, sizeof(*places->page)))
            return ct_store_no_memory(store);
        if (make_place(store, table, columns, leaf, &found, &place) != 0)
            return -1;
        if (found != ALONE)
            break;
        places->page[places->count++] = place;
        loader->rows += leaf->to - leaf->from;
        *loaded = leaf->to;
        CT_TEST_POINT("page_loader.placed");
    }
    loader->builder.count = places->count;
    if (found == NOWHERE)
        give_up(store);
    return 0;
}

static size_t up_to_a_page(size_t rows)
{
    return rows < CT_LEAF_ROWS_MAX ? rows : CT_LEAF_ROWS_MAX;
}

int ct_page_loader_add(struct ct_store *store, const struct ct_loaded_table *table, const int64_t *value,
                       unsigned columns, size_t rows, size_t *loaded, size_t *by_row)
{
    struct ct_page_loader *loader = &store->loader;
    int64_t newest = 0;
    *loaded = 0;
    *by_row = rows;
    if (rows < CT_PAGE_LOADER_ROWS_MIN || !loader->is_possible)
        return 0;
    if (check_schema(store) != 0)
        return -1;
    if (*loader->why)
        return 0;
    if (ct_store_ask(store, table->newest, 0, NULL, 0, NULL, &newest) != 0)
        return -1;
    if (value[0] <= newest)
        return 0;
    if (newest == 0) { /* the table's only page is its root, which will not stay a leaf */
        *by_row = up_to_a_page(rows);
        return 0;
    }
    if (!ct_page_builder_add(&loader->builder, value, columns, rows))
        return ct_store_no_memory(store);
    if (load_pages(store, table, columns, loaded) != 0)
        return -1;
    *by_row = loader->is_possible ? up_to_a_page(rows - *loaded) : rows - *loaded;
    return 0;
}

int ct_page_loader_replace(struct ct_store *store)
{
    const struct ct_page_loader *loader = &store->loader;
    int64_t last_key;
    for (size_t i = 0; i < loader->places.count; i++) {
        const struct ct_leaf *leaf = &loader->builder.leaf[i];
        if (ct_leaf_rows(loader->places.page[i], &last_key) != 1 || last_key != leaf->last_key) {
            give_up(store);
            return ct_message(store->error, "a page of database '%s' has moved in SQLite's cache",
                              store->database.path);
        }
        memcpy(loader->places.page[i], leaf->page, CT_LEAF_BYTES);
    }
    ct_page_cache_drop(&loader->places);
    CT_TEST_POINT("page_loader.replaced");
    return 0;
}

void ct_page_loader_end(struct ct_store *store)
{
    ct_page_cache_drop(NULL);
    store->loader.places.count = store->loader.builder.count = 0;
}

const char *ct_page_loader_why_not(const struct ct_store *store)
{
    return store->loader.why;
}

void ct_page_loader_finish(struct ct_store *store)
{
    ct_page_builder_finish(&store->loader.builder);
    free(store->loader.places.page);
    free(store->loader.watched.page);
}
