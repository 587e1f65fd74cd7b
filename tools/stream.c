#include "stream.h"

#include "schema_sql.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* More sites than a daemon gives numbers to between two renumberings, several times over. */
enum { SITES_MAX = 1 << 22, PLACES_MAX = 8 };

struct file {
    struct ct_site *sites; /* by site_id - first_site */
    int64_t first_site, site_count;
    sqlite3_stmt *detail[CT_DETAILS];
    sqlite3_stmt *long_calls;
    struct ct_stream_call long_call; /* the next of them */
    bool has_long;
};

struct thread {
    int64_t process_id, tid;
    uint32_t number;
};

struct ct_stream {
    sqlite3 *connection;
    struct ct_stream_choice choice;
    uint32_t files;
    struct file file[CT_SERIES_FILES_MAX];
    uint32_t at;         /* the file that calls are read from, the oldest first */
    sqlite3_stmt *calls; /* of it */
    struct names {
        struct names *next;
        char text[];
    } * names;
    void *threads; /* tsearch(3)'s, of struct thread */
    uint32_t thread_count;
    int error;
};

/* A query of schema/stream.sql, each %s of which is the file's schema. */
static sqlite3_stmt *prepare(struct ct_stream *stream, const char *sql, uint32_t file)
{
    const char *schema = ct_series_schema(file);
    sqlite3_str *text = sqlite3_str_new(stream->connection);
    for (const char *at; (at = strstr(sql, "%s")); sql = at + 2)
        sqlite3_str_appendf(text, "%.*s%s", (int)(at - sql), sql, schema);
    sqlite3_str_appendall(text, sql);
    char *query = sqlite3_str_finish(text);
    sqlite3_stmt *statement = NULL;
    stream->error =
        query ? sqlite3_prepare_v2(stream->connection, query, -1, &statement, NULL) : SQLITE_NOMEM;
    sqlite3_free(query);
    return statement;
}

/* A copy that lives as long as the stream; equal texts that follow each other are one. */
static const char *keep(struct ct_stream *stream, const unsigned char *text)
{
    if (!text)
        return NULL;
    int looked = 0;
    for (struct names *name = stream->names; name && looked < PLACES_MAX; name = name->next, looked++) {
        if (strcmp(name->text, (const char *)text) == 0)
            return name->text;
    }
    const size_t bytes = strlen((const char *)text) + 1;
    struct names *name = malloc(sizeof(*name) + bytes);
    if (!name) {
        stream->error = SQLITE_NOMEM;
        return "";
    }
    memcpy(name->text, text, bytes);
    name->next = stream->names;
    stream->names = name;
    return name->text;
}

static bool make_room(struct ct_stream *stream, struct file *file, uint32_t number)
{
    char sql[128];
    sqlite3_stmt *extent = NULL;
    snprintf(sql, sizeof(sql), "SELECT min(site_id), max(site_id) FROM %s.site", ct_series_schema(number));
    stream->error = sqlite3_prepare_v2(stream->connection, sql, -1, &extent, NULL);
    if (stream->error == SQLITE_OK && sqlite3_step(extent) == SQLITE_ROW &&
        sqlite3_column_type(extent, 0) == SQLITE_INTEGER) {
        file->first_site = sqlite3_column_int64(extent, 0);
        const int64_t last = sqlite3_column_int64(extent, 1);
        if (file->first_site < 0 || last - file->first_site >= SITES_MAX)
            stream->error = SQLITE_CORRUPT;
        else
            file->site_count = last - file->first_site + 1;
    }
    sqlite3_finalize(extent);
    if (stream->error == SQLITE_OK) {
        file->sites = calloc((size_t)file->site_count + 1, sizeof(*file->sites));
        stream->error = file->sites ? SQLITE_OK : SQLITE_NOMEM;
    }
    return stream->error == SQLITE_OK;
}

bool ct_stream_wants(const struct ct_stream_choice *choice, int64_t pid, const char *layer_name,
                     const char *name)
{
    uint32_t layer = 0;
    while (layer < CT_LAYER_COUNT && strcmp(ct_layer_names[layer], layer_name) != 0)
        layer++;
    return (choice->pid == 0 || pid == choice->pid) &&
           (layer == CT_LAYER_COUNT || ct_selection_takes(&choice->selection, layer, name));
}

static int compare_threads(const void *a, const void *b)
{
    const struct thread *x = a, *y = b;
    if (x->process_id != y->process_id)
        return x->process_id < y->process_id ? -1 : 1;
    return (x->tid > y->tid) - (x->tid < y->tid);
}

/* The same in all files, each of which has ids of its own. */
static uint32_t thread_number(struct ct_stream *stream, int64_t process_id, int64_t tid)
{
    struct thread *thread = malloc(sizeof(*thread));
    if (thread)
        *thread = (struct thread){ .process_id = process_id, .tid = tid, .number = stream->thread_count };
    struct thread **found = thread ? tsearch(thread, &stream->threads, compare_threads) : NULL;
    if (!found) {
        free(thread);
        stream->error = SQLITE_NOMEM;
        return 0;
    }
    if (*found == thread)
        stream->thread_count++;
    else
        free(thread);
    return (*found)->number;
}

uint32_t ct_stream_threads(const struct ct_stream *stream)
{
    return stream->thread_count;
}

static enum ct_site_kind kind_of(const struct ct_site *site)
{
    if (strcmp(site->layer, "nvtx") != 0)
        return CT_SITE_CALL;
    if (strcmp(site->name, "nvtxMark") == 0)
        return CT_SITE_MARK;
    return strcmp(site->name, "nvtxRangeStart") == 0 ? CT_SITE_START : CT_SITE_PUSH;
}

static bool load_sites(struct ct_stream *stream, uint32_t number)
{
    struct file *file = &stream->file[number];
    if (!make_room(stream, file, number))
        return false;
    sqlite3_stmt *rows = prepare(stream, ct_sql_stream_sites, number);
    int rc = SQLITE_DONE;
    while (stream->error == SQLITE_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        const int64_t place = sqlite3_column_int64(rows, 0) - file->first_site;
        if (place < 0 || place >= file->site_count)
            continue;
        struct ct_site *site = &file->sites[place];
        *site = (struct ct_site){
            .process_id = sqlite3_column_int64(rows, 1),
            .pid = sqlite3_column_int64(rows, 2),
            .tid = sqlite3_column_int64(rows, 3),
            .depth = sqlite3_column_int(rows, 7),
            .status = sqlite3_column_int(rows, 8),
            .layer = keep(stream, sqlite3_column_text(rows, 4)),
            .name = keep(stream, sqlite3_column_text(rows, 5)),
            .category = keep(stream, sqlite3_column_text(rows, 6)),
            .status_name = keep(stream, sqlite3_column_text(rows, 9)),
            .file = number,
        };
        site->thread = thread_number(stream, site->process_id, site->tid);
        if (!site->layer || !site->name || !site->category)
            continue;
        site->kind = kind_of(site);
        site->wanted = ct_stream_wants(&stream->choice, site->pid, site->layer, site->name);
    }
    if (stream->error == SQLITE_OK && rc != SQLITE_DONE)
        stream->error = rc;
    sqlite3_finalize(rows);
    return stream->error == SQLITE_OK;
}

struct ct_stream *ct_stream_open(sqlite3 *connection, const struct ct_series *series,
                                 const struct ct_stream_choice *choice)
{
    struct ct_stream *stream = calloc(1, sizeof(*stream));
    if (!stream) {
        ct_fail(EXIT_FAILURE, "out of memory");
        return NULL;
    }
    *stream = (struct ct_stream){ .connection = connection, .choice = *choice, .files = series->files };
    stream->at = stream->files;
    stream->error = sqlite3_exec(connection, "BEGIN", NULL, NULL, NULL);
    for (uint32_t i = 0; i < stream->files && stream->error == SQLITE_OK; i++)
        load_sites(stream, i);
    if (stream->error != SQLITE_OK) {
        char why[256];
        ct_trace_why(connection, why, sizeof(why));
        ct_fail(EXIT_FAILURE, "cannot read the trace: %s", why);
        ct_stream_close(stream);
        return NULL;
    }
    return stream;
}

void ct_stream_close(struct ct_stream *stream)
{
    if (!stream)
        return;
    sqlite3_finalize(stream->calls);
    for (uint32_t i = 0; i < stream->files; i++) {
        for (int d = 0; d < CT_DETAILS; d++)
            sqlite3_finalize(stream->file[i].detail[d]);
        sqlite3_finalize(stream->file[i].long_calls);
        free(stream->file[i].sites);
    }
    for (struct names *name = stream->names, *next; name; name = next) {
        next = name->next;
        free(name);
    }
    tdestroy(stream->threads, free);
    sqlite3_exec(stream->connection, "COMMIT", NULL, NULL, NULL);
    free(stream);
}

static sqlite3_stmt *window(struct ct_stream *stream, const char *sql, uint32_t file)
{
    sqlite3_stmt *rows = prepare(stream, sql, file);
    sqlite3_bind_int64(rows, 1, stream->choice.from_ns);
    sqlite3_bind_int64(rows, 2, stream->choice.to_ns);
    return rows;
}

/* The next row that is wanted; false behind the last. */
static bool step(struct ct_stream *stream, sqlite3_stmt *rows, const struct file *file,
                 struct ct_stream_call *call)
{
    int rc = SQLITE_DONE;
    while (rows && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        const int64_t place = sqlite3_column_int64(rows, 2) - file->first_site;
        if (place < 0 || place >= file->site_count || !file->sites[place].wanted)
            continue;
        const int64_t duration_ns = sqlite3_column_int64(rows, 1);
        call->id = sqlite3_column_int64(rows, 0);
        if (call->id < 0 || duration_ns < 0 || duration_ns > call->id)
            continue; /* no daemon wrote that */
        call->start_ns = call->id - duration_ns;
        call->has_bytes = sqlite3_column_type(rows, 3) == SQLITE_INTEGER;
        call->bytes = sqlite3_column_int64(rows, 3);
        call->site = &file->sites[place];
        return true;
    }
    if (rc != SQLITE_DONE)
        stream->error = rc;
    return false;
}

bool ct_stream_next(struct ct_stream *stream, struct ct_stream_call *call)
{
    while (stream->error == SQLITE_OK) {
        if (stream->calls && step(stream, stream->calls, &stream->file[stream->at], call))
            return true;
        sqlite3_finalize(stream->calls);
        stream->calls = NULL;
        if (stream->error != SQLITE_OK || stream->at == 0)
            break;
        stream->calls = window(stream, ct_sql_stream_calls, --stream->at);
    }
    return false;
}

/* In each file they are in the order of their starts; one may have begun long before another of an earlier
 * file. */
bool ct_stream_next_long(struct ct_stream *stream, struct ct_stream_call *call)
{
    struct file *first = NULL;
    for (uint32_t i = 0; i < stream->files && stream->error == SQLITE_OK; i++) {
        struct file *file = &stream->file[i];
        if (!file->long_calls) {
            file->long_calls = window(stream, ct_sql_stream_long_calls, i);
            file->has_long = step(stream, file->long_calls, file, &file->long_call);
        }
        if (file->has_long && (!first || file->long_call.start_ns < first->long_call.start_ns))
            first = file;
    }
    if (!first || stream->error != SQLITE_OK)
        return false;
    *call = first->long_call;
    first->has_long = step(stream, first->long_calls, first, &first->long_call);
    return true;
}

static enum ct_detail detail_of(const struct ct_site *site)
{
    if (strcmp(site->layer, "nvtx") == 0)
        return CT_DETAIL_RANGE;
    if (strcmp(site->layer, "driver") != 0)
        return CT_DETAIL_NONE;
    if (strcmp(site->category, "launch") == 0)
        return CT_DETAIL_LAUNCH;
    if (strcmp(site->category, "copy") == 0)
        return CT_DETAIL_COPY;
    return strncmp(site->name, "cuGraphLaunch", strlen("cuGraphLaunch")) == 0 ? CT_DETAIL_GRAPH_LAUNCH
                                                                              : CT_DETAIL_NONE;
}

sqlite3_stmt *ct_stream_detail(struct ct_stream *stream, const struct ct_stream_call *call,
                               enum ct_detail *detail)
{
    static const char *const sql[CT_DETAILS] = {
        [CT_DETAIL_LAUNCH] = ct_sql_stream_launch,
        [CT_DETAIL_GRAPH_LAUNCH] = ct_sql_stream_graph_launch,
        [CT_DETAIL_COPY] = ct_sql_stream_copy,
        [CT_DETAIL_RANGE] = ct_sql_stream_range,
    };
    static const char *const earlier[CT_DETAILS] = {
        [CT_DETAIL_LAUNCH] = ct_sql_stream_earlier_launch,
        [CT_DETAIL_GRAPH_LAUNCH] = ct_sql_stream_earlier_graph_launch,
        [CT_DETAIL_COPY] = ct_sql_stream_earlier_copy,
    };
    *detail = detail_of(call->site);
    if (*detail == CT_DETAIL_NONE || stream->error != SQLITE_OK)
        return NULL;
    sqlite3_stmt **statement = &stream->file[call->site->file].detail[*detail];
    if (!*statement)
        *statement = prepare(stream, sql[*detail], call->site->file);
    /* Streams have had no names in traces of schema 5. */
    if (!*statement && stream->error == SQLITE_ERROR && earlier[*detail])
        *statement = prepare(stream, earlier[*detail], call->site->file);
    sqlite3_reset(*statement);
    sqlite3_bind_int64(*statement, 1, call->id);
    if (*statement && sqlite3_step(*statement) == SQLITE_ROW)
        return *statement;
    *detail = CT_DETAIL_NONE;
    return NULL;
}

int ct_stream_error(const struct ct_stream *stream)
{
    return stream->error;
}
