#include "launch_stream.h"

#include "call_stream.h"
#include "intern.h"
#include "room.h"
#include "series.h"

#include "schema_sql.h"

#include <stdlib.h>
#include <string.h>

/* The launches of kernels, or of graphs, in a file. */
struct source {
    sqlite3_stmt *rows;
    bool has_row;
    int64_t call_id;
};
enum { KERNELS, GRAPHS, LATE_KERNELS, LATE_GRAPHS, KINDS };

struct ct_launch_stream {
    sqlite3 *connection;
    struct ct_scope scope;
    uint32_t at; /* the file being read; the oldest is read first */
    struct source source[KINDS];
    sqlite3_stmt *shape;               /* of this file */
    sqlite3_stmt *process;             /* whether a process is wanted */
    struct ct_intern shapes, graphs;   /* the values are places in `place`, from 1 */
    size_t *shape_place, *graph_place; /* places in `what`, plus 1; 0: not wanted */
    size_t shape_room, graph_room;
    struct ct_launched *what;
    size_t count, room;
    struct ct_names names;
    int error;
};

static bool fail(struct ct_launch_stream *stream, int error)
{
    if (stream->error == SQLITE_OK)
        stream->error = error;
    return false;
}

static sqlite3_stmt *prepare(struct ct_launch_stream *stream, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    const int rc = ct_series_prepare(stream->connection, sql, stream->at, &statement);
    if (rc != SQLITE_OK)
        fail(stream, rc);
    return statement;
}

static void step(struct ct_launch_stream *stream, struct source *source)
{
    const int rc = source->rows ? sqlite3_step(source->rows) : SQLITE_DONE;
    source->has_row = rc == SQLITE_ROW;
    if (source->has_row)
        source->call_id = sqlite3_column_int64(source->rows, 0);
    else if (rc != SQLITE_DONE)
        fail(stream, rc);
}

static void close_file(struct ct_launch_stream *stream)
{
    for (int kind = 0; kind < KINDS; kind++)
        sqlite3_finalize(stream->source[kind].rows);
    memset(stream->source, 0, sizeof(stream->source));
    sqlite3_finalize(stream->shape);
    stream->shape = NULL;
}

/* All launches that began in the window returned at most CT_STREAM_LONG_NS after it, except long ones. */
static void open_file(struct ct_launch_stream *stream)
{
    static const char *const sql[KINDS] = { [KERNELS] = ct_sql_stream_launches,
                                            [GRAPHS] = ct_sql_stream_graph_launches,
                                            [LATE_KERNELS] = ct_sql_stream_late_launches,
                                            [LATE_GRAPHS] = ct_sql_stream_late_graph_launches };
    const struct ct_scope *scope = &stream->scope;
    const bool is_open = scope->to_ns > INT64_MAX - CT_STREAM_LONG_NS; /* no launch can be later */
    const int64_t until_ns = is_open ? INT64_MAX : scope->to_ns + CT_STREAM_LONG_NS;
    stream->shape = prepare(stream, ct_sql_stream_shape);
    for (int kind = 0; kind < (is_open ? LATE_KERNELS : KINDS) && stream->error == SQLITE_OK; kind++) {
        struct source *source = &stream->source[kind];
        const bool is_late = kind >= LATE_KERNELS;
        source->rows = prepare(stream, sql[kind]);
        sqlite3_bind_int64(source->rows, 1, is_late ? until_ns : scope->from_ns);
        sqlite3_bind_int64(source->rows, 2, is_late ? scope->to_ns : until_ns);
        step(stream, source);
    }
}

static bool is_wanted(struct ct_launch_stream *stream, int64_t process_id)
{
    sqlite3_bind_int64(stream->process, 1, process_id);
    sqlite3_bind_int64(stream->process, 2, stream->scope.pid);
    const int rc = sqlite3_step(stream->process);
    sqlite3_reset(stream->process);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        fail(stream, rc);
    return rc == SQLITE_ROW;
}

/* Returns the stream's single copy of a column's text, or NULL for NULL. */
static const char *keep_text(struct ct_launch_stream *stream, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    bool failed = false;
    if (!text)
        return NULL;
    const struct ct_name name = ct_names_number(&stream->names, text, &failed);
    if (failed)
        fail(stream, SQLITE_NOMEM);
    return name.text;
}

/* Adds what is launched, if its process is wanted. Returns its place, plus 1, or 0. */
static size_t add_launched(struct ct_launch_stream *stream, const struct ct_launched *launched)
{
    if (!is_wanted(stream, launched->process_id))
        return 0;
    if (!ct_make_room(&stream->what, stream->count, &stream->room, sizeof(*stream->what))) {
        fail(stream, SQLITE_NOMEM);
        return 0;
    }
    stream->what[stream->count] = *launched;
    return ++stream->count;
}

/* Reads a shape of the file. Returns its place, plus 1, or 0 if it is not wanted. */
static size_t read_shape(struct ct_launch_stream *stream, int64_t shape_id)
{
    sqlite3_stmt *row = stream->shape;
    size_t place = 0;
    sqlite3_bind_int64(row, 1, shape_id);
    const int rc = sqlite3_step(row);
    if (rc == SQLITE_ROW) {
        struct ct_launched launched = { .process_id = sqlite3_column_int64(row, 0),
                                        .captured = sqlite3_column_int64(row, 1),
                                        .graph_exec = INT64_MIN,
                                        .kernel = keep_text(stream, row, 2),
                                        .mangled = keep_text(stream, row, 3) };
        for (int i = 0; i < 3; i++) {
            launched.grid[i] = sqlite3_column_int64(row, 4 + i);
            launched.block[i] = sqlite3_column_int64(row, 7 + i);
        }
        place = add_launched(stream, &launched);
    } else if (rc != SQLITE_DONE) {
        fail(stream, rc);
    }
    sqlite3_reset(row);
    return place;
}

/* Returns the number of a key, from 1, with room for its place, or 0 if out of memory. */
static size_t number_of(struct ct_launch_stream *stream, struct ct_intern *intern, const int64_t *key,
                        size_t **place, size_t *room, bool *is_new)
{
    const int64_t number = ct_intern_get(intern, key, is_new);
    if (number > 0 && (!*is_new || ct_make_room(place, (size_t)number - 1, room, sizeof(**place))))
        return (size_t)number;
    fail(stream, SQLITE_NOMEM);
    return 0;
}

static size_t kernel_place(struct ct_launch_stream *stream, sqlite3_stmt *row)
{
    const int64_t key[] = { stream->at, sqlite3_column_int64(row, 2) };
    bool is_new;
    const size_t number =
        number_of(stream, &stream->shapes, key, &stream->shape_place, &stream->shape_room, &is_new);
    if (number == 0)
        return 0;
    if (is_new)
        stream->shape_place[number - 1] = read_shape(stream, key[1]);
    return stream->shape_place[number - 1];
}

static size_t graph_place(struct ct_launch_stream *stream, sqlite3_stmt *row)
{
    const int64_t key[] = { sqlite3_column_int64(row, 2), sqlite3_column_int64(row, 3),
                            sqlite3_column_int64(row, 4) };
    bool is_new;
    const size_t number =
        number_of(stream, &stream->graphs, key, &stream->graph_place, &stream->graph_room, &is_new);
    if (number == 0)
        return 0;
    if (is_new)
        stream->graph_place[number - 1] = add_launched(
            stream, &(struct ct_launched){ .process_id = key[0], .graph_exec = key[1], .captured = key[2] });
    return stream->graph_place[number - 1];
}

/* Returns the source with the next launch of the file, or NULL. */
static struct source *first_source(struct ct_launch_stream *stream)
{
    struct source *first = NULL;
    for (int kind = 0; kind < KINDS; kind++) {
        struct source *source = &stream->source[kind];
        if (source->has_row && (!first || source->call_id < first->call_id))
            first = source;
    }
    return first;
}

/* Returns the source with the next launch, or NULL. */
static struct source *next_source(struct ct_launch_stream *stream)
{
    struct source *source = NULL;
    while (stream->error == SQLITE_OK && !(source = first_source(stream)) && stream->at > 0) {
        close_file(stream);
        stream->at--;
        open_file(stream);
    }
    return stream->error == SQLITE_OK ? source : NULL;
}

/* Reads the source's launch. Returns false if it is not wanted. */
static bool read_launch(struct ct_launch_stream *stream, const struct source *source,
                        struct ct_launch *launch)
{
    const int kind = (int)(source - stream->source);
    const bool is_graph = kind == GRAPHS || kind == LATE_GRAPHS;
    const int64_t start_ns = source->call_id - sqlite3_column_int64(source->rows, 1);
    if (source->call_id > stream->scope.to_ns && start_ns > stream->scope.to_ns)
        return false;
    const size_t place = is_graph ? graph_place(stream, source->rows) : kernel_place(stream, source->rows);
    const int64_t kernels = is_graph ? sqlite3_column_int64(source->rows, 5) : 1;
    *launch = (struct ct_launch){ .what = place - 1,
                                  .call_id = source->call_id,
                                  .start_ns = start_ns,
                                  .kernels = kernels > 1 ? kernels : 1 };
    return place > 0;
}

bool ct_launch_stream_next(struct ct_launch_stream *stream, struct ct_launch *launch)
{
    bool is_read = false;
    for (struct source *source; !is_read && (source = next_source(stream)) != NULL;) {
        is_read = read_launch(stream, source, launch);
        step(stream, source);
    }
    return is_read && stream->error == SQLITE_OK;
}

const struct ct_launched *ct_launch_stream_what(const struct ct_launch_stream *stream, size_t *count)
{
    *count = stream->count;
    return stream->what;
}

void ct_launch_stream_take_names(struct ct_launch_stream *stream, struct ct_names *names)
{
    *names = stream->names;
    stream->names = (struct ct_names){ 0 };
}

struct ct_launch_stream *ct_launch_stream_open(sqlite3 *connection, const struct ct_scope *scope)
{
    struct ct_launch_stream *stream = calloc(1, sizeof(*stream));
    if (!stream)
        return NULL;
    *stream = (struct ct_launch_stream){ .connection = connection,
                                         .scope = *scope,
                                         .at = ct_series_files(connection) };
    ct_intern_init(&stream->shapes, 2 * sizeof(int64_t), SIZE_MAX, 1);
    ct_intern_init(&stream->graphs, 3 * sizeof(int64_t), SIZE_MAX, 1);
    const int rc = sqlite3_prepare_v2(connection, ct_sql_stream_process_of, -1, &stream->process, NULL);
    if (rc != SQLITE_OK)
        fail(stream, rc);
    return stream;
}

void ct_launch_stream_close(struct ct_launch_stream *stream)
{
    if (!stream)
        return;
    close_file(stream);
    sqlite3_finalize(stream->process);
    ct_names_free(&stream->names);
    free(stream->what);
    free(stream->shape_place);
    free(stream->graph_place);
    ct_intern_finish(&stream->shapes);
    ct_intern_finish(&stream->graphs);
    free(stream);
}

int ct_launch_stream_error(const struct ct_launch_stream *stream)
{
    return stream->error;
}
