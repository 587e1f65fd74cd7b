#include "bulk.h"

#include "page_loader.h"
#include "room.h"
#include "statements.h"
#include "store_state.h"
#include "test_point.h"

#include <stdlib.h>
#include <string.h>

/* For each table of rows, its name and the statement that reads it. The page loader cannot load tables that
 * have an index. */
static const struct {
    const char *name;
    unsigned columns;
    enum ct_statement insert;
    const struct ct_loaded_table *loaded; /* NULL: insert rows one by one */
} tables[CT_BULK_COUNT] = {
    [CT_BULK_CALL] = { "new_calls", 4, CT_SQL_insert_calls, &ct_loaded_calls },
    [CT_BULK_LAUNCH] = { "new_launches", 3, CT_SQL_insert_launches, &ct_loaded_launches },
    [CT_BULK_TRANSFER] = { "new_transfers", 4, CT_SQL_insert_transfers, &ct_loaded_transfers },
    [CT_BULK_CALL_SUBJECT] = { "new_call_subjects", 2, CT_SQL_insert_call_subjects,
                               &ct_loaded_call_subjects },
    [CT_BULK_GPU_RUN] = { "new_gpu_runs", 7, CT_SQL_insert_gpu_runs, &ct_loaded_gpu_runs },
    [CT_BULK_LONG_CALL] = { "new_long_calls", 2, CT_SQL_insert_long_calls, NULL },
};

static int64_t key_of(const struct ct_bulk_rows *rows, unsigned columns, size_t row)
{
    return rows->value[row * columns];
}

static bool next_row(struct ct_row_table *table)
{
    struct ct_bulk_table *bulk = (struct ct_bulk_table *)table;
    if (bulk->read == bulk->read_to)
        return false;
    memcpy(table->value, bulk->reading->value + bulk->read++ * bulk->columns,
           bulk->columns * sizeof(*table->value));
    return true;
}

int64_t *ct_bulk_add(struct ct_store *store, enum ct_bulk table, int64_t key)
{
    static int64_t nobodys[CT_ROW_COLUMNS_MAX];
    store->effort += table != CT_BULK_CALL;
    struct ct_bulk_table *bulk = &store->bulk[table];
    struct ct_bulk_batch *taken = &bulk->taken;
    const size_t count = taken->ordered.count;
    const bool is_next = count == 0 || key > key_of(&taken->ordered, bulk->columns, count - 1);
    struct ct_bulk_rows *rows = is_next ? &taken->ordered : &taken->stray;
    if (!ct_make_room(&rows->value, rows->count, &rows->room, bulk->columns * sizeof(*rows->value))) {
        store->out_of_memory = true;
        return nobodys;
    }
    int64_t *row = rows->value + rows->count++ * bulk->columns;
    row[0] = key;
    return row;
}

/* Returns the index of the first row whose key is at least `key`. */
static size_t place_of(const struct ct_bulk_rows *rows, unsigned columns, int64_t key)
{
    size_t from = 0, to = rows->count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (key_of(rows, columns, middle) < key)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

bool ct_bulk_has(const struct ct_store *store, enum ct_bulk table, int64_t key)
{
    const struct ct_bulk_table *bulk = &store->bulk[table];
    const struct ct_bulk_rows *rows = &bulk->taken.ordered;
    const size_t place = place_of(rows, bulk->columns, key);
    return place < rows->count && key_of(rows, bulk->columns, place) == key;
}

/* Inserts rows one by one. */
static int insert(struct ct_store *store, enum ct_bulk table, const struct ct_bulk_rows *rows, size_t from,
                  size_t to)
{
    struct ct_bulk_table *bulk = &store->bulk[table];
    bulk->reading = rows;
    bulk->read = from;
    bulk->read_to = to;
    return from == to ? 0 : ct_store_run(store, store->statement[tables[table].insert], NULL);
}

static int compare_keys(const void *a, const void *b)
{
    const int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

/* Merges the stray rows into the ordered rows, except for stray rows whose keys precede the first ordered
 * row. Sets *twins if a key occurs twice. Returns 0 or -1. */
static int gather(struct ct_store *store, struct ct_bulk_table *bulk, bool *twins)
{
    struct ct_bulk_rows *ordered = &bulk->committing.ordered, *stray = &bulk->committing.stray;
    const unsigned columns = bulk->columns;
    const size_t row_bytes = columns * sizeof(int64_t);
    *twins = false;
    if (stray->count == 0)
        return 0;
    qsort(stray->value, stray->count, row_bytes, compare_keys);
    const size_t before = place_of(stray, columns, key_of(ordered, columns, 0));
    size_t strays = stray->count, rows = ordered->count, to = rows + strays - before;
    if (!ct_make_room_for(&ordered->value, rows, strays - before, &ordered->room, row_bytes))
        return ct_store_no_memory(store);
    ordered->count = to;
    while (strays > before) {
        const bool is_stray = key_of(stray, columns, strays - 1) > key_of(ordered, columns, rows - 1);
        const int64_t *from =
            is_stray ? stray->value + --strays * columns : ordered->value + --rows * columns;
        memcpy(ordered->value + --to * columns, from, row_bytes);
        *twins |= to + 1 < ordered->count && key_of(ordered, columns, to) == key_of(ordered, columns, to + 1);
    }
    stray->count = before;
    return 0;
}

/* Writes a table's rows, in whole pages where possible. */
static int write_table(struct ct_store *store, enum ct_bulk table)
{
    struct ct_bulk_table *bulk = &store->bulk[table];
    bool twins;
    const struct ct_bulk_rows *rows = &bulk->committing.ordered, *stray = &bulk->committing.stray;
    if (gather(store, bulk, &twins) != 0 || insert(store, table, stray, 0, stray->count) != 0)
        return -1;
    for (size_t at = 0; at < rows->count;) {
        size_t loaded = 0, by_row = rows->count - at;
        if (tables[table].loaded && !twins &&
            ct_page_loader_add(store, tables[table].loaded, rows->value + at * bulk->columns, bulk->columns,
                               rows->count - at, &loaded, &by_row) != 0)
            return -1;
        at += loaded + by_row;
        if (insert(store, table, rows, at - by_row, at) != 0)
            return -1;
    }
    return 0;
}

int ct_bulk_write(struct ct_store *store)
{
    for (int i = 0; i < CT_BULK_COUNT; i++) {
        if (write_table(store, (enum ct_bulk)i) != 0)
            return -1;
    }
    CT_TEST_POINT("store.bulk");
    return ct_page_loader_replace(store);
}

int ct_bulk_register(struct ct_store *store, sqlite3 *connection)
{
    int rc = SQLITE_OK;
    for (int i = 0; rc == SQLITE_OK && i < CT_BULK_COUNT; i++)
        rc = ct_row_table_register(connection, tables[i].name, &store->bulk[i].table);
    return rc;
}

static void clear(struct ct_bulk_batch *batch)
{
    batch->ordered.count = batch->stray.count = 0;
}

void ct_bulk_hand_over(struct ct_store *store)
{
    for (int i = 0; i < CT_BULK_COUNT; i++) {
        struct ct_bulk_table *bulk = &store->bulk[i];
        const struct ct_bulk_batch taken = bulk->taken;
        bulk->taken = bulk->committing;
        bulk->committing = taken;
        clear(&bulk->taken);
    }
}

void ct_bulk_clear(struct ct_store *store)
{
    for (int i = 0; i < CT_BULK_COUNT; i++) {
        clear(&store->bulk[i].taken);
        clear(&store->bulk[i].committing);
    }
}

void ct_bulk_init(struct ct_store *store)
{
    for (int i = 0; i < CT_BULK_COUNT; i++)
        store->bulk[i] = (struct ct_bulk_table){ .table.next = next_row, .columns = tables[i].columns };
}

void ct_bulk_finish(struct ct_store *store)
{
    for (int i = 0; i < CT_BULK_COUNT; i++) {
        const struct ct_bulk_table *bulk = &store->bulk[i];
        free(bulk->taken.ordered.value);
        free(bulk->taken.stray.value);
        free(bulk->committing.ordered.value);
        free(bulk->committing.stray.value);
    }
}
