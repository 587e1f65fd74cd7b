#include "own_time.h"

#include "call_stream.h"
#include "intern.h"
#include "room.h"
#include "trace_file.h"

#include <stdlib.h>
#include <string.h>

/* In the order of the columns. */
enum own_layer {
    OWN_LIBRARY,
    OWN_RUNTIME,
    OWN_DRIVER,
    OWN_IOCTL,
    OWN_KERNEL,
    OWN_BLOCKED,
    OWN_PREEMPTED,
    OWN_LAYERS,
    OWN_PROGRAM = OWN_LAYERS,
};
static const char *const layer_names[] = { "library", "runtime", "driver",    "ioctl",
                                           "kernel",  "blocked", "preempted", "program" };

/* The columns of the table. The arguments are hidden columns. */
enum {
    COLUMN_PROCESS,
    COLUMN_LAYER,
    COLUMN_NAME,
    COLUMN_CALLS,
    COLUMN_TOTAL,
    COLUMN_OWN,
    COLUMN_INSIDE,
    COLUMN_ARGUMENTS = COLUMN_INSIDE + OWN_LAYERS,
    ARGUMENTS = 3
};
static const char declaration[] =
    "CREATE TABLE x (process_id, layer, name, calls, total_ns, own_ns, library_ns, runtime_ns, driver_ns, "
    "ioctl_ns, kernel_ns, blocked_ns, preempted_ns, from_ns HIDDEN, to_ns HIDDEN, only_pid HIDDEN)";

/* Calls of a thread that are not inside another call, as far as is known. */
struct outer {
    int64_t start_ns;             /* of the first of them */
    int64_t total_ns, counted_ns; /* of all of them, and of those that returned in the window */
    int64_t own_ns[OWN_LAYERS];
};

/* A call takes the calls that began after it off the end of the list, because they are inside it. */
struct own_thread {
    int64_t process_id;
    struct outer *outer;
    size_t count, room;
    int64_t first_ns, last_ns, outer_ns; /* of calls that returned in the window */
};

struct own_row {
    int64_t process_id;
    const char *name; /* valid as long as the stream; after that, a copy */
    enum own_layer layer;
    int64_t calls, total_ns, own_ns, inside_ns[OWN_LAYERS];
};

struct own_times {
    struct ct_stream *stream;
    struct ct_intern threads_found, rows_found; /* numbers from 1 */
    struct own_thread *thread;
    struct own_row *row;
    size_t threads, threads_room, rows, rows_room;
    int64_t from_ns; /* only calls that returned at this time or later have rows */
};

static enum own_layer layer_of(const struct ct_site *site)
{
    static const struct {
        const char *layer, *name, *category; /* NULL: any */
        enum own_layer own;
    } layers[] = {
        { "kernel", "blocked", NULL, OWN_BLOCKED }, { "kernel", "preempted", NULL, OWN_PREEMPTED },
        { "hook", NULL, "library", OWN_LIBRARY },   { "runtime", NULL, NULL, OWN_RUNTIME },
        { "driver", NULL, NULL, OWN_DRIVER },       { "ioctl", NULL, NULL, OWN_IOCTL },
    };
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        if (strcmp(site->layer, layers[i].layer) == 0 &&
            (!layers[i].name || strcmp(site->name, layers[i].name) == 0) &&
            (!layers[i].category || strcmp(site->category, layers[i].category) == 0))
            return layers[i].own;
    }
    return OWN_KERNEL;
}

/* Returns the entry of a table for a key, after adding an empty one if necessary, or NULL if out of memory.
 */
static void *entry_of(struct ct_intern *found, const void *key, void *table, size_t *count, size_t *room,
                      size_t bytes, bool *is_new)
{
    char **entries = table;
    const int64_t number = ct_intern_get(found, key, is_new);
    if (number == 0 || (*is_new && !ct_make_room(table, *count, room, bytes)))
        return NULL;
    char *entry = *entries + (size_t)(number - 1) * bytes;
    if (*is_new) {
        memset(entry, 0, bytes);
        ++*count;
    }
    return entry;
}

static struct own_thread *thread_of(struct own_times *times, const struct ct_stream_call *call)
{
    const int64_t key[] = { call->site.process_id, call->site.tid };
    bool is_new;
    struct own_thread *thread = entry_of(&times->threads_found, key, &times->thread, &times->threads,
                                         &times->threads_room, sizeof(*thread), &is_new);
    if (thread && is_new)
        *thread = (struct own_thread){ .process_id = call->site.process_id, .first_ns = INT64_MAX };
    return thread;
}

static struct own_row *row_of(struct own_times *times, int64_t process_id, const struct ct_site *site)
{
    const int64_t key[] = { process_id, site ? (int64_t)(uintptr_t)site->layer : 0,
                            site ? (int64_t)(uintptr_t)site->name : 0 };
    bool is_new;
    struct own_row *row = entry_of(&times->rows_found, key, &times->row, &times->rows, &times->rows_room,
                                   sizeof(*row), &is_new);
    if (row && is_new)
        *row = (struct own_row){ .process_id = process_id,
                                 .name = site ? site->name : NULL,
                                 .layer = site ? layer_of(site) : OWN_PROGRAM };
    return row;
}

static void add(struct outer *sum, const struct outer *other)
{
    sum->total_ns += other->total_ns;
    sum->counted_ns += other->counted_ns;
    for (int layer = 0; layer < OWN_LAYERS; layer++)
        sum->own_ns[layer] += other->own_ns[layer];
}

/* Halves a list that has become too long. A call that begins between two merged calls does not count the
 * second as inside it. */
static void merge_pairs(struct own_thread *thread)
{
    for (size_t i = 0; i < thread->count / 2; i++) {
        thread->outer[i] = thread->outer[2 * i];
        add(&thread->outer[i], &thread->outer[2 * i + 1]);
    }
    if (thread->count % 2)
        thread->outer[thread->count / 2] = thread->outer[thread->count - 1];
    thread->count = (thread->count + 1) / 2;
}

/* Counts a call that returned in the window. */
static void count(struct own_thread *thread, struct own_row *row, const struct ct_stream_call *call,
                  const struct outer *inside, int64_t own_ns)
{
    row->calls++;
    row->total_ns += call->id - call->start_ns;
    row->own_ns += own_ns;
    for (int layer = 0; layer < OWN_LAYERS; layer++)
        row->inside_ns[layer] += inside->own_ns[layer];
    if (call->start_ns < thread->first_ns)
        thread->first_ns = call->start_ns;
    thread->last_ns = call->id;
    thread->outer_ns += call->id - call->start_ns - inside->counted_ns;
}

/* Adds a call, which ends after all calls added before. Returns false if out of memory. */
static bool add_call(struct own_times *times, const struct ct_stream_call *call)
{
    enum { OUTER_MOST = 1 << 15 };
    struct own_thread *thread = thread_of(times, call);
    struct own_row *row = row_of(times, call->site.process_id, &call->site);
    if (!thread || !row)
        return false;
    struct outer inside = { .start_ns = call->start_ns };
    while (thread->count > 0 && thread->outer[thread->count - 1].start_ns >= call->start_ns)
        add(&inside, &thread->outer[--thread->count]);
    const int64_t duration_ns = call->id - call->start_ns;
    /* The clocks of the library and of a probe differ by less than a microsecond. */
    const int64_t own_ns = duration_ns > inside.total_ns ? duration_ns - inside.total_ns : 0;
    const bool is_counted = call->id >= times->from_ns;
    if (is_counted)
        count(thread, row, call, &inside, own_ns);
    inside.total_ns = duration_ns;
    inside.counted_ns = is_counted ? duration_ns : 0;
    inside.start_ns = call->start_ns;
    inside.own_ns[row->layer] += own_ns;
    if (thread->count == OUTER_MOST)
        merge_pairs(thread);
    if (!ct_make_room(&thread->outer, thread->count, &thread->room, sizeof(*thread->outer)))
        return false;
    thread->outer[thread->count++] = inside;
    return true;
}

/* Adds the time outside all calls. Returns false if out of memory. */
static bool add_programs(struct own_times *times)
{
    for (size_t i = 0; i < times->threads; i++) {
        const struct own_thread *thread = &times->thread[i];
        struct own_row *row = thread->last_ns > 0 ? row_of(times, thread->process_id, NULL) : NULL;
        const int64_t outside_ns = thread->last_ns - thread->first_ns - thread->outer_ns;
        if (thread->last_ns > 0 && !row)
            return false;
        if (row && outside_ns > 0)
            row->own_ns += outside_ns;
    }
    return true;
}

/* Copies the names, which belong to the stream. Removes rows without calls in the window. Returns false if
 * out of memory. */
static bool keep_rows(struct own_times *times)
{
    size_t kept = 0;
    bool fine = true;
    for (size_t i = 0; i < times->rows; i++) {
        struct own_row row = times->row[i];
        if (row.calls == 0 && row.layer != OWN_PROGRAM)
            continue;
        row.name = row.name ? strdup(row.name) : NULL;
        fine &= row.name || row.layer == OWN_PROGRAM;
        times->row[kept++] = row;
    }
    times->rows = kept;
    return fine;
}

/* ---- reading the calls ---- */

/* Returns the earliest time at which a call returned that may be inside a call of the window. */
static int64_t earliest_inside(sqlite3 *connection, const struct ct_scope *scope)
{
    const int64_t long_ns = ct_ask_number(
        connection, "SELECT min(start_ns) FROM long_calls WHERE call_id >= ?1", scope->from_ns, INT64_MAX);
    const int64_t short_ns = scope->from_ns - CT_STREAM_LONG_NS;
    const int64_t from_ns = long_ns < short_ns ? long_ns : short_ns;
    return from_ns > 0 ? from_ns : 0;
}

static int read_calls(struct own_times *times, sqlite3 *connection, struct ct_scope scope)
{
    struct ct_stream_call call;
    times->from_ns = scope.from_ns;
    scope.from_ns = earliest_inside(connection, &scope);
    struct ct_stream *stream = ct_stream_open(connection, &scope);
    if (!stream)
        return SQLITE_ERROR;
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK && ct_stream_next(stream, &call)) {
        if (call.site.kind == CT_SITE_CALL && !add_call(times, &call))
            rc = SQLITE_NOMEM;
    }
    if (rc == SQLITE_OK)
        rc = ct_stream_error(stream);
    if (rc == SQLITE_OK && !add_programs(times))
        rc = SQLITE_NOMEM;
    if (!keep_rows(times) && rc == SQLITE_OK)
        rc = SQLITE_NOMEM;
    ct_stream_close(stream);
    return rc;
}

static void finish(struct own_times *times)
{
    for (size_t i = 0; i < times->threads; i++)
        free(times->thread[i].outer);
    for (size_t i = 0; i < times->rows; i++)
        free((char *)(uintptr_t)times->row[i].name);
    free(times->thread);
    free(times->row);
    ct_intern_finish(&times->threads_found);
    ct_intern_finish(&times->rows_found);
}

/* ---- the table ---- */

struct table {
    sqlite3_vtab base;
    sqlite3 *connection;
};
struct cursor {
    sqlite3_vtab_cursor base;
    struct own_times times;
    size_t at;
};

static int table_connect(sqlite3 *connection, void *client, int argc, const char *const *argv,
                         sqlite3_vtab **table, char **error)
{
    (void)client, (void)argc, (void)argv, (void)error;
    struct table *made = sqlite3_malloc(sizeof(*made));
    if (!made)
        return SQLITE_NOMEM;
    *made = (struct table){ .connection = connection };
    *table = &made->base;
    sqlite3_vtab_config(connection, SQLITE_VTAB_DIRECTONLY);
    return sqlite3_declare_vtab(connection, declaration);
}

static int table_disconnect(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

/* Bit N of the index's number is set if argument N is given. */
static int table_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    int place[ARGUMENTS], given = 0;
    memset(place, -1, sizeof(place));
    for (int i = 0; i < info->nConstraint; i++) {
        const int argument = info->aConstraint[i].iColumn - COLUMN_ARGUMENTS;
        if (argument < 0)
            continue;
        if (!info->aConstraint[i].usable || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
            return SQLITE_CONSTRAINT;
        place[argument] = i;
    }
    for (int argument = 0; argument < ARGUMENTS; argument++) {
        if (place[argument] < 0)
            continue;
        info->aConstraintUsage[place[argument]].argvIndex = __builtin_popcount((unsigned)given) + 1;
        info->aConstraintUsage[place[argument]].omit = 1;
        given |= 1 << argument;
    }
    info->idxNum = given;
    info->estimatedCost = 1e9;
    info->estimatedRows = 1000;
    return SQLITE_OK;
}

static int cursor_open(sqlite3_vtab *table, sqlite3_vtab_cursor **result)
{
    (void)table;
    struct cursor *cursor = sqlite3_malloc(sizeof(*cursor));
    if (!cursor)
        return SQLITE_NOMEM;
    *cursor = (struct cursor){ 0 };
    *result = &cursor->base;
    return SQLITE_OK;
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    finish(&cursor->times);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int given, const char *name, int argc,
                         sqlite3_value **argv)
{
    (void)name, (void)argc;
    struct cursor *cursor = (struct cursor *)base;
    struct own_times *times = &cursor->times;
    struct ct_scope scope = ct_scope_all();
    int64_t *const arguments[ARGUMENTS] = { &scope.from_ns, &scope.to_ns, &scope.pid };
    for (int i = 0; i < ARGUMENTS; i++) {
        if (!(given & 1 << i))
            continue;
        if (sqlite3_value_type(*argv) != SQLITE_NULL)
            *arguments[i] = sqlite3_value_int64(*argv);
        argv++;
    }
    finish(times);
    *times = (struct own_times){ 0 };
    cursor->at = 0;
    ct_intern_init(&times->threads_found, 2 * sizeof(int64_t), SIZE_MAX, 1);
    ct_intern_init(&times->rows_found, 3 * sizeof(int64_t), SIZE_MAX, 1);
    return read_calls(times, ((struct table *)base->pVtab)->connection, scope);
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
    ((struct cursor *)base)->at++;
    return SQLITE_OK;
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
    const struct cursor *cursor = (struct cursor *)base;
    return cursor->at >= cursor->times.rows;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const struct cursor *cursor = (struct cursor *)base;
    const struct own_row *row = &cursor->times.row[cursor->at];
    const int64_t number[] = { [COLUMN_PROCESS] = row->process_id,
                               [COLUMN_CALLS] = row->calls,
                               [COLUMN_TOTAL] = row->total_ns,
                               [COLUMN_OWN] = row->own_ns };
    if (column == COLUMN_LAYER)
        sqlite3_result_text(context, layer_names[row->layer], -1, SQLITE_STATIC);
    else if (column == COLUMN_NAME)
        sqlite3_result_text(context, row->name, -1, SQLITE_TRANSIENT);
    else if (column < COLUMN_INSIDE)
        sqlite3_result_int64(context, number[column]);
    else if (column < COLUMN_ARGUMENTS)
        sqlite3_result_int64(context, row->inside_ns[column - COLUMN_INSIDE]);
    return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = (sqlite3_int64)((struct cursor *)base)->at;
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .xConnect = table_connect, /* no xCreate: the function exists under the module's name */
    .xBestIndex = table_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = cursor_open,
    .xClose = cursor_close,
    .xFilter = cursor_filter,
    .xNext = cursor_next,
    .xEof = cursor_eof,
    .xColumn = cursor_column,
    .xRowid = cursor_rowid,
};

int ct_own_time_add(sqlite3 *connection)
{
    return sqlite3_create_module(connection, "own_time", &module, NULL);
}
