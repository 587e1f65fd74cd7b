#include "numbers.h"

#include "clock.h"
#include "deferred.h"
#include "schema_sql.h"
#include "statements.h"
#include "store_state.h"

#include <stdio.h>
#include <string.h>

/* Bounds the tables of numbers: together 20 MiB when they are full, as ten thousand short-lived processes
 * make them. A thousand threads that call eighty functions each have room. */
enum {
    SITES_MAX = 1 << 17,
    SHAPES_MAX = 1 << 15,
    ROUTES_MAX = 1 << 14,
    SUBJECTS_MAX = 1 << 15,
};

/* 0 when that cannot be read, which is noted in numbers_unknown. */
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
    /* Whoever wrote the file may have put any number there. */
    if (number == INT64_MAX) {
        snprintf(store->error, sizeof(store->error),
                 "database '%s' has a row of the highest number that there is: name another file with --db",
                 store->database.path);
        number = -1;
    }
    store->numbers_unknown |= number < 0;
    return number + 1;
}

/* No call that is stored, and may name an earlier number, returns later than `numbered_ns`. */
static void mark_numbers(struct ct_store *store)
{
    const uint64_t now_ns = ct_monotonic_ns();
    store->numbering++;
    store->numbered_ns = now_ns > store->calls.last_id ? now_ns : store->calls.last_id;
    store->numbers_from[CT_NUMBER_SITE] = store->sites.next;
    store->numbers_from[CT_NUMBER_SHAPE] = store->shapes.next;
    store->numbers_from[CT_NUMBER_ROUTE] = store->routes.next;
    store->numbers_from[CT_NUMBER_SUBJECT] = store->subjects.next;
    store->numbers_from[CT_NUMBER_TEXT] = store->texts.next;
}

void ct_store_renumber(struct ct_store *store)
{
    ct_intern_reset(&store->sites, store->sites.next);
    ct_intern_reset(&store->shapes, store->shapes.next);
    ct_intern_reset(&store->routes, store->routes.next);
    ct_intern_reset(&store->subjects, store->subjects.next);
    ct_texts_reset(&store->texts, store->texts.next);
    mark_numbers(store);
}

void ct_store_forget_numbers(struct ct_store *store)
{
    store->numbers_unknown = false;
    ct_intern_reset(&store->sites, first_free(store, "SELECT max(site_id) FROM site"));
    ct_intern_reset(&store->shapes, first_free(store, "SELECT max(shape_id) FROM shape"));
    ct_intern_reset(&store->routes, first_free(store, "SELECT max(route_id) FROM route"));
    ct_intern_reset(&store->subjects, first_free(store, "SELECT max(subject_id) FROM subject"));
    ct_texts_reset(&store->texts, first_free(store, "SELECT max(text_id) FROM text"));
    store->next_thread_id = first_free(store, "SELECT max(seq) FROM sqlite_sequence WHERE name = 'thread'");
    const int64_t free_id = first_free(store, ct_sql_store_last_call);
    store->calls.last_id = free_id > 0 ? (uint64_t)free_id - 1 : 0;
    store->calls.ordered_ns = store->calls.last_id;
    const int64_t behind = first_free(store, ct_sql_store_earlier_until);
    ct_earlier_begin(&store->earlier, behind > 0 ? (uint64_t)behind - 1 : 0);
    mark_numbers(store);
    store->generation++;
}

void ct_store_numbers_init(struct ct_store *store)
{
    ct_intern_init(&store->sites, 3 * sizeof(int64_t), SITES_MAX, 1);
    ct_intern_init(&store->shapes, CT_SHAPE_VALUES * sizeof(int64_t), SHAPES_MAX, 1);
    ct_intern_init(&store->routes, CT_ROUTE_VALUES * sizeof(int64_t), ROUTES_MAX, 1);
    ct_intern_init(&store->subjects, CT_SUBJECT_VALUES * sizeof(int64_t), SUBJECTS_MAX, 1);
}

void ct_store_numbers_finish(struct ct_store *store)
{
    ct_intern_finish(&store->sites);
    ct_intern_finish(&store->shapes);
    ct_intern_finish(&store->routes);
    ct_intern_finish(&store->subjects);
    ct_texts_finish(&store->texts);
}

int64_t ct_store_site(struct ct_store *store, int64_t thread_id, int64_t function_id, uint32_t depth,
                      int32_t status)
{
    const int64_t key[] = { thread_id, function_id, (int64_t)((uint64_t)depth << 32 | (uint32_t)status) };
    bool is_new;
    const int64_t site = ct_intern_get(&store->sites, key, &is_new);
    if (is_new)
        ct_store_defer(store, CT_SQL_insert_site, CT_VALUES(site, thread_id, function_id, depth, status),
                       NULL);
    store->out_of_memory |= site == 0;
    return site;
}

int64_t ct_store_thread(struct ct_store *store, int64_t process_id, uint32_t tid, const char *name)
{
    const int64_t thread_id = store->next_thread_id++;
    ct_store_defer(store, CT_SQL_insert_thread, CT_VALUES(thread_id, process_id, tid), name);
    return thread_id;
}

/* The number of a combination whose row is the number and the values. */
static int64_t number_of(struct ct_store *store, struct ct_intern *intern, const int64_t *value,
                         size_t values, enum ct_statement insert)
{
    enum { VALUES_MAX = 16 };
    bool is_new;
    const int64_t number = ct_intern_get(intern, value, &is_new);
    if (is_new) {
        int64_t row[1 + VALUES_MAX] = { number };
        memcpy(row + 1, value, values * sizeof(*value));
        ct_store_defer(store, insert, 1 + values, row, NULL);
    }
    store->out_of_memory |= number == 0;
    return number;
}

int64_t ct_store_shape(struct ct_store *store, const int64_t value[CT_SHAPE_VALUES])
{
    return number_of(store, &store->shapes, value, CT_SHAPE_VALUES, CT_SQL_insert_shape);
}

int64_t ct_store_subject(struct ct_store *store, const int64_t value[CT_SUBJECT_VALUES])
{
    return number_of(store, &store->subjects, value, CT_SUBJECT_VALUES, CT_SQL_insert_subject);
}

int64_t ct_store_route(struct ct_store *store, const int64_t value[CT_ROUTE_VALUES], const char *kind)
{
    bool is_new;
    const int64_t route = ct_intern_get(&store->routes, value, &is_new);
    if (is_new)
        ct_store_defer(store, CT_SQL_insert_route, CT_VALUES(route, value[0], value[2], value[3], value[4]),
                       kind);
    store->out_of_memory |= route == 0;
    return route;
}

int64_t ct_store_text(struct ct_store *store, const char *text)
{
    bool is_new;
    const int64_t number = ct_texts_get(&store->texts, text, &is_new);
    if (is_new)
        ct_store_defer(store, CT_SQL_insert_text, CT_VALUES(number), text);
    store->out_of_memory |= number == 0;
    return number;
}

uint32_t ct_store_numbering(const struct ct_store *store)
{
    return store->numbering;
}
