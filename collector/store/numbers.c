#include "numbers.h"

#include "account.h"
#include "clock.h"
#include "deferred.h"
#include "fields.h"
#include "schema_sql.h"
#include "statements.h"
#include "store_state.h"

#include <stdlib.h>
#include <string.h>

enum { KNOWN_SITES = 64 };

/* Caches the ID of the site that belongs to a function, a depth and a status. */
struct ct_known_site {
    uint64_t call;   /* function, depth and status */
    int64_t site_id; /* 0: unknown */
};

/* The kinds of IDs. `highest` queries the highest ID in the database, and `insert` writes the row that
 * defines an ID. `values` is how many values the row has, and `limit` is the maximum number of entries in
 * memory. Full tables take 25 MiB in total. For example, the tables have room for a thousand threads that
 * each call eighty functions, while ten thousand short-lived processes fill them. */
static const struct {
    const char *highest;
    enum ct_statement insert;
    size_t values, limit;
} kinds[CT_NUMBERS] = {
    [CT_NUMBER_SITE] = { "SELECT max(site_id) FROM site", CT_SQL_insert_site, 3, 1 << 17 },
    [CT_NUMBER_SHAPE] = { "SELECT max(shape_id) FROM shape", CT_SQL_insert_shape, CT_SHAPE_VALUES, 1 << 15 },
    [CT_NUMBER_ROUTE] = { "SELECT max(route_id) FROM route", CT_SQL_insert_route, CT_ROUTE_VALUES, 1 << 14 },
    [CT_NUMBER_SUBJECT] = { "SELECT max(subject_id) FROM subject", CT_SQL_insert_subject, CT_SUBJECT_VALUES,
                            1 << 15 },
    [CT_NUMBER_FIELD_SET] = { "SELECT max(field_set_id) FROM field", CT_SQL_insert_field, CT_FIELD_SET_VALUES,
                              1 << 12 },
    [CT_NUMBER_GPU_TASK] = { "SELECT max(gpu_task_id) FROM gpu_task", CT_SQL_insert_gpu_task,
                             CT_GPU_TASK_VALUES, 1 << 14 },
    [CT_NUMBER_TEXT] = { "SELECT max(text_id) FROM text", CT_SQL_insert_text, 0, CT_INTERNER_TEXTS_MAX },
};

/* Returns the first free ID. If the highest ID cannot be read, returns 0 and sets numbers_unknown. */
static int64_t first_free(struct ct_store *store, const char *sql)
{
    sqlite3_stmt *statement;
    int64_t number = -1;
    if (sqlite3_prepare_v2(store->database.connection, sql, -1, &statement, NULL) == SQLITE_OK &&
        ct_store_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0) < 0 ? 0 : sqlite3_column_int64(statement, 0);
    else
        ct_store_failed(store);
    sqlite3_finalize(statement);
    /* Do not trust the highest ID in the file: it can be any number. */
    if (number == INT64_MAX)
        number = ct_message(store->error,
                            "database '%s' contains the highest possible row number, so no rows can be "
                            "added: name another file with --db",
                            store->database.path);
    store->numbers_unknown |= number < 0;
    return number + 1;
}

static void restart(struct ct_store *store, int kind, int64_t first)
{
    store->numbers_from[kind] = first;
    if (kind == CT_NUMBER_TEXT)
        ct_interner_reset(&store->texts, first);
    else
        ct_intern_reset(&store->numbers[kind], first);
}

/* Records that no earlier ID is valid any more. Every call that refers to an earlier ID has already been
 * stored, and returned at or before `numbered_ns`. */
static void mark_numbers(struct ct_store *store)
{
    const uint64_t now_ns = ct_monotonic_ns();
    store->numbering++;
    store->numbered_ns = now_ns > store->calls.last_id ? now_ns : store->calls.last_id;
}

void ct_store_renumber(struct ct_store *store)
{
    for (int i = 0; i < CT_NUMBERS; i++)
        restart(store, i, i == CT_NUMBER_TEXT ? store->texts.next : store->numbers[i].next);
    mark_numbers(store);
}

void ct_store_forget_numbers(struct ct_store *store)
{
    store->numbers_unknown = false;
    for (int i = 0; i < CT_NUMBERS; i++)
        restart(store, i, first_free(store, kinds[i].highest));
    store->next_thread_id = first_free(store, "SELECT max(seq) FROM sqlite_sequence WHERE name = 'thread'");
    store->next_run_id = first_free(store, ct_sql_store_newest_gpu_run);
    const int64_t free_id = first_free(store, ct_sql_store_last_call);
    store->calls.last_id = free_id > 0 ? (uint64_t)free_id - 1 : 0;
    store->calls.ordered_ns = store->calls.last_id;
    const int64_t behind = first_free(store, ct_sql_store_earlier_until);
    ct_earlier_files_begin(&store->earlier, behind > 0 ? (uint64_t)behind - 1 : 0);
    mark_numbers(store);
    store->generation++;
}

void ct_store_numbers_init(struct ct_store *store)
{
    for (int i = 0; i < CT_NUMBER_TEXT; i++)
        ct_intern_init(&store->numbers[i], kinds[i].values * sizeof(int64_t), kinds[i].limit, 1);
}

void ct_store_numbers_finish(struct ct_store *store)
{
    for (int i = 0; i < CT_NUMBER_TEXT; i++)
        ct_intern_finish(&store->numbers[i]);
    ct_interner_finish(&store->texts);
}

static int64_t find_site(struct ct_store *store, const struct ct_call *call)
{
    const int64_t thread_id = call->caller->thread_id, function_id = call->callee->function_id;
    const int64_t key[] = { thread_id, function_id,
                            (int64_t)((uint64_t)call->depth << 32 | (uint32_t)call->status) };
    bool is_new;
    const int64_t site = ct_intern_get(&store->numbers[CT_NUMBER_SITE], key, &is_new);
    if (is_new)
        ct_store_defer(store, CT_SQL_insert_site,
                       CT_VALUES(site, thread_id, function_id, call->depth, call->status), NULL);
    store->out_of_memory |= site == 0;
    return site;
}

/* Threads tend to repeat the same calls, so a thread's last site is cached for each function and depth. */
int64_t ct_store_site(struct ct_store *store, const struct ct_call *call)
{
    struct ct_caller *caller = call->caller;
    const int64_t function_id = call->callee->function_id;
    if (!caller->known && !(caller->known = calloc(KNOWN_SITES, sizeof(*caller->known))))
        return find_site(store, call);
    if (caller->numbering != store->numbering) {
        memset(caller->known, 0, KNOWN_SITES * sizeof(*caller->known));
        caller->numbering = store->numbering;
    }
    const uint64_t key = (uint64_t)function_id << 40 | (uint64_t)call->depth << 32 | (uint32_t)call->status;
    struct ct_known_site *known =
        &caller->known[((uint64_t)function_id ^ (uint64_t)call->depth << 4) % KNOWN_SITES];
    if (known->call != key || known->site_id == 0) {
        known->call = key;
        known->site_id = find_site(store, call);
    }
    return known->site_id;
}

int64_t ct_store_thread(struct ct_store *store, int64_t process_id, uint32_t tid, const char *name)
{
    const int64_t thread_id = store->next_thread_id++;
    ct_store_defer(store, CT_SQL_insert_thread, CT_VALUES(thread_id, process_id, tid), name);
    return thread_id;
}

int64_t ct_store_number(struct ct_store *store, enum ct_number kind, const int64_t *value, const char *text)
{
    enum { VALUES_MAX = 16 };
    bool is_new;
    const int64_t number = ct_intern_get(&store->numbers[kind], value, &is_new);
    if (is_new) {
        int64_t row[1 + VALUES_MAX] = { number };
        memcpy(row + 1, value, kinds[kind].values * sizeof(*value));
        ct_store_defer(store, kinds[kind].insert, 1 + kinds[kind].values, row, text);
    }
    store->out_of_memory |= number == 0;
    return number;
}

/* The fields of a function's calls, encoded so that equal field sets consist of equal bytes. */
struct field_set {
    int64_t function_id;
    uint8_t is_text[CT_FIELDS_MAX];
    char name[CT_FIELDS_MAX][CT_FIELD_NAME_MAX + 1]; /* "" for none */
};
static_assert(sizeof(struct field_set) == CT_FIELD_SET_VALUES * sizeof(int64_t), "field_set");

int64_t ct_store_field_set(struct ct_store *store, int64_t function_id, const struct ct_field *field,
                           size_t count)
{
    struct field_set key = { .function_id = function_id };
    bool is_new;
    if (count == 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        key.is_text[i] = field[i].type == CT_FIELD_TEXT;
        memcpy(key.name[i], field[i].name, strlen(field[i].name));
    }
    const int64_t set = ct_intern_get(&store->numbers[CT_NUMBER_FIELD_SET], &key, &is_new);
    for (size_t i = 0; i < count && is_new; i++)
        ct_store_defer(store, CT_SQL_insert_field,
                       CT_VALUES(set, (int64_t)i + 1, function_id, key.is_text[i]), key.name[i]);
    store->out_of_memory |= set == 0;
    return set;
}

int64_t ct_store_text(struct ct_store *store, const char *text)
{
    bool is_new;
    const int64_t number = ct_interner_get(&store->texts, text, &is_new);
    if (is_new)
        ct_store_defer(store, CT_SQL_insert_text, CT_VALUES(number), text);
    store->out_of_memory |= number == 0;
    return number;
}
