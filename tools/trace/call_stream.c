#include "call_stream.h"

#include "name_numbers.h"
#include "trace_file.h"

#include "schema_sql.h"

#include <stdlib.h>
#include <string.h>

/* The number of sites in the cache, since looking up a site in the trace takes a few microseconds. The cache
 * is bounded because threads come and go, so that a trace may have any number of sites. */
enum { SITES_KEPT = 1 << 16 };

struct file {
    sqlite3_stmt *site;
    sqlite3_stmt *detail[CT_DETAILS];
    sqlite3_stmt *long_calls;
    struct ct_stream_call long_call; /* the next long call */
    bool has_long;
};

/* A cached site. Its index in the cache follows from its file and ID, and it is kept until another site needs
 * the same index. */
struct kept_site {
    int64_t site_id;
    uint32_t epoch; /* the stream's epoch when the site was read; 0: unused entry */
    bool is_wanted;
    struct ct_site site;
};

struct ct_stream {
    sqlite3 *connection;
    struct ct_scope scope;
    uint32_t files;
    struct file file[CT_SERIES_FILES_MAX];
    uint32_t at;         /* the file being read; the oldest is read first */
    sqlite3_stmt *calls; /* the query for the calls */
    sqlite3_stmt *process;
    bool has_begun; /* the stream's own transaction */
    bool is_look;   /* the query reads at most `rows_max` rows of one file */
    int64_t rows_max, rows, position;
    struct kept_site *sites;
    uint32_t epoch;
    uint64_t sites_read;
    struct ct_names texts;
    int error;
};

/* Prepares a query of schema/stream.sql for a file. Traces with schema 5 have no stream names. */
static sqlite3_stmt *prepare(struct ct_stream *stream, const char *sql, uint32_t file, bool with_names)
{
    static const char name[] = ", stream_name";
    sqlite3_stmt *statement = NULL;
    const char *names = with_names ? NULL : strstr(sql, name);
    char *text = names ? sqlite3_mprintf("%.*s%s", (int)(names - sql), sql, names + strlen(name)) : NULL;
    stream->error = names && !text
                        ? SQLITE_NOMEM
                        : ct_series_prepare(stream->connection, names ? text : sql, file, &statement);
    sqlite3_free(text);
    return statement;
}

/* Returns the stream's single copy of a string, which is valid as long as the stream. */
static const char *keep(struct ct_stream *stream, const unsigned char *text)
{
    bool failed = false;
    if (!text)
        return NULL;
    const struct ct_name name = ct_names_number(&stream->texts, (const char *)text, &failed);
    if (failed)
        stream->error = SQLITE_NOMEM;
    return failed ? "" : name.text;
}

bool ct_stream_wants(const struct ct_scope *scope, int64_t pid, const char *layer_name, const char *name)
{
    uint32_t layer = 0;
    while (layer < CT_LAYER_COUNT && strcmp(ct_layer_names[layer], layer_name) != 0)
        layer++;
    return (scope->pid == 0 || pid == scope->pid) &&
           (layer == CT_LAYER_COUNT || ct_selection_takes(&scope->only.selection, layer, name));
}

static enum ct_site_kind kind_of(const struct ct_site *site)
{
    if (strcmp(site->layer, "nvtx") != 0)
        return CT_SITE_CALL;
    if (strcmp(site->name, "nvtxMark") == 0)
        return CT_SITE_MARK;
    return strcmp(site->name, "nvtxRangeStart") == 0 ? CT_SITE_START : CT_SITE_PUSH;
}

/* Reads a site from a file. Returns false if the file has no site with this ID. */
static bool read_site(struct ct_stream *stream, uint32_t number, int64_t site_id, struct ct_site *site)
{
    struct file *file = &stream->file[number];
    sqlite3_bind_int64(file->site, 1, site_id);
    const int rc = sqlite3_step(file->site);
    const bool found = rc == SQLITE_ROW;
    if (found) {
        *site = (struct ct_site){
            .process_id = sqlite3_column_int64(file->site, 0),
            .pid = sqlite3_column_int64(file->site, 1),
            .tid = sqlite3_column_int64(file->site, 2),
            .depth = sqlite3_column_int(file->site, 6),
            .status = sqlite3_column_int(file->site, 7),
            .layer = keep(stream, sqlite3_column_text(file->site, 3)),
            .name = keep(stream, sqlite3_column_text(file->site, 4)),
            .category = keep(stream, sqlite3_column_text(file->site, 5)),
            .status_name = keep(stream, sqlite3_column_text(file->site, 8)),
            .has_failed = sqlite3_column_int(file->site, 9) != 0,
            .recorded_ns = sqlite3_column_int64(file->site, 10),
            .file = number,
            .number = ++stream->sites_read,
        };
    } else if (rc != SQLITE_DONE) {
        stream->error = rc;
    }
    sqlite3_reset(file->site);
    return found && site->layer && site->name && site->category;
}

/* Returns whether the process belongs to the run, if a run of the trace was chosen. */
static bool has_process(struct ct_stream *stream, int64_t process_id)
{
    sqlite3_bind_int64(stream->process, 1, process_id);
    const int rc = sqlite3_step(stream->process);
    sqlite3_reset(stream->process);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        stream->error = rc;
    return rc == SQLITE_ROW;
}

/* Finds a site, in the cache or in its file. Returns NULL if the site does not exist or its calls are not
 * wanted. */
static const struct ct_site *find_site(struct ct_stream *stream, uint32_t number, int64_t site_id)
{
    struct kept_site *kept = &stream->sites[((uint64_t)site_id + number) % SITES_KEPT];
    if (kept->epoch != stream->epoch || kept->site_id != site_id || kept->site.file != number) {
        kept->epoch = stream->epoch;
        kept->site_id = site_id;
        kept->is_wanted =
            read_site(stream, number, site_id, &kept->site) &&
            kept->site.recorded_ns >= stream->scope.recorded_ns &&
            ct_stream_wants(&stream->scope, kept->site.pid, kept->site.layer, kept->site.name) &&
            has_process(stream, kept->site.process_id);
        kept->site.file = number;
        if (kept->is_wanted)
            kept->site.kind = kind_of(&kept->site);
    }
    return kept->is_wanted ? &kept->site : NULL;
}

struct ct_stream *ct_stream_open(sqlite3 *connection, const struct ct_scope *scope)
{
    struct ct_stream *stream = calloc(1, sizeof(*stream));
    if (!stream) {
        ct_fail(EXIT_FAILURE, "out of memory");
        return NULL;
    }
    *stream = (struct ct_stream){
        .connection = connection, .scope = *scope, .files = ct_series_files(connection), .epoch = 1
    };
    stream->at = stream->files;
    stream->sites = calloc(SITES_KEPT, sizeof(*stream->sites));
    stream->has_begun = sqlite3_get_autocommit(connection) != 0;
    stream->error = !stream->sites      ? SQLITE_NOMEM
                    : stream->has_begun ? sqlite3_exec(connection, "BEGIN", NULL, NULL, NULL)
                                        : SQLITE_OK;
    if (stream->error == SQLITE_OK)
        stream->process = prepare(stream, ct_sql_stream_process, 0, true);
    for (uint32_t i = 0; i < stream->files && stream->error == SQLITE_OK; i++)
        stream->file[i].site = prepare(stream, ct_sql_stream_site, i, true);
    if (stream->error != SQLITE_OK) {
        char why[256];
        ct_trace_why(connection, stream->error, why, sizeof(why));
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
    sqlite3_finalize(stream->process);
    for (uint32_t i = 0; i < stream->files; i++) {
        for (int d = 0; d < CT_DETAILS; d++)
            sqlite3_finalize(stream->file[i].detail[d]);
        sqlite3_finalize(stream->file[i].long_calls);
        sqlite3_finalize(stream->file[i].site);
    }
    ct_names_free(&stream->texts);
    free(stream->sites);
    if (stream->has_begun)
        sqlite3_exec(stream->connection, "COMMIT", NULL, NULL, NULL);
    free(stream);
}

static sqlite3_stmt *window(struct ct_stream *stream, const char *sql, uint32_t file)
{
    sqlite3_stmt *rows = prepare(stream, sql, file, true);
    sqlite3_bind_int64(rows, 1, stream->scope.from_ns);
    sqlite3_bind_int64(rows, 2, stream->scope.to_ns);
    return rows;
}

/* Reads the next wanted row. Returns false after the last one. */
static bool step(struct ct_stream *stream, sqlite3_stmt *rows, uint32_t file, struct ct_stream_call *call)
{
    int rc = SQLITE_DONE;
    while (rows && stream->error == SQLITE_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        if (rows == stream->calls) {
            stream->position = sqlite3_column_int64(rows, 0);
            stream->rows++;
        }
        const struct ct_site *site = find_site(stream, file, sqlite3_column_int64(rows, 2));
        if (!site)
            continue;
        const int64_t duration_ns = sqlite3_column_int64(rows, 1);
        call->id = sqlite3_column_int64(rows, 0);
        if (call->id < 0 || duration_ns < 0 || duration_ns > call->id)
            continue; /* a daemon never writes such a row */
        call->start_ns = call->id - duration_ns;
        call->has_bytes = sqlite3_column_type(rows, 3) == SQLITE_INTEGER;
        call->bytes = sqlite3_column_int64(rows, 3);
        call->site = *site;
        return stream->error == SQLITE_OK;
    }
    if (rc != SQLITE_DONE && stream->error == SQLITE_OK)
        stream->error = rc;
    return false;
}

bool ct_stream_next(struct ct_stream *stream, struct ct_stream_call *call)
{
    while (stream->error == SQLITE_OK) {
        if (stream->calls && step(stream, stream->calls, stream->at, call))
            return true;
        if (stream->is_look)
            return false;
        sqlite3_finalize(stream->calls);
        stream->calls = NULL;
        if (stream->error != SQLITE_OK || stream->at == 0)
            break;
        stream->calls = window(stream, ct_sql_stream_calls, --stream->at);
        sqlite3_bind_int64(stream->calls, 3, -1); /* no limit */
    }
    return false;
}

/* Merges the long calls of all files. Each file's long calls are read in order of start time. A call in a
 * later file may have started before a call in an earlier file. */
bool ct_stream_next_long(struct ct_stream *stream, struct ct_stream_call *call)
{
    struct file *first = NULL;
    uint32_t number = 0;
    for (uint32_t i = 0; i < stream->files && stream->error == SQLITE_OK; i++) {
        struct file *file = &stream->file[i];
        if (!file->long_calls) {
            file->long_calls = window(stream, ct_sql_stream_long_calls, i);
            file->has_long = step(stream, file->long_calls, i, &file->long_call);
        }
        if (file->has_long && (!first || file->long_call.start_ns < first->long_call.start_ns)) {
            first = file;
            number = i;
        }
    }
    if (!first || stream->error != SQLITE_OK)
        return false;
    *call = first->long_call;
    first->has_long = step(stream, first->long_calls, number, &first->long_call);
    return true;
}

static enum ct_detail detail_of(const struct ct_site *site)
{
    if (strcmp(site->layer, "nvtx") == 0)
        return CT_DETAIL_RANGE;
    const bool is_fence = strcmp(site->layer, "kernel") == 0 && strcmp(site->category, "sync") == 0;
    if (is_fence || strcmp(site->layer, "hook") == 0)
        return CT_DETAIL_HOOK;
    if (strcmp(site->layer, "driver") != 0)
        return CT_DETAIL_NONE;
    if (strncmp(site->name, "cuGraphLaunch", strlen("cuGraphLaunch")) == 0)
        return CT_DETAIL_GRAPH_LAUNCH;
    if (strcmp(site->category, "launch") == 0)
        return CT_DETAIL_LAUNCH;
    return strcmp(site->category, "copy") == 0 ? CT_DETAIL_COPY : CT_DETAIL_NONE;
}

sqlite3_stmt *ct_stream_detail_of(struct ct_stream *stream, const struct ct_stream_call *call,
                                  enum ct_detail detail)
{
    static const char *const sql[CT_DETAILS] = {
        [CT_DETAIL_LAUNCH] = ct_sql_stream_launch,
        [CT_DETAIL_GRAPH_LAUNCH] = ct_sql_stream_graph_launch,
        [CT_DETAIL_COPY] = ct_sql_stream_copy,
        [CT_DETAIL_RANGE] = ct_sql_stream_range,
        [CT_DETAIL_HOOK] = ct_sql_stream_hook,
        [CT_DETAIL_SET] = ct_sql_stream_set,
        [CT_DETAIL_ADDRESSES] = ct_sql_stream_addresses,
        [CT_DETAIL_ALLOCATION] = ct_sql_stream_allocation,
        [CT_DETAIL_SUBJECT] = ct_sql_stream_subject,
        [CT_DETAIL_SHAPE] = ct_sql_stream_shape_of,
    };
    if (detail == CT_DETAIL_NONE || stream->error != SQLITE_OK)
        return NULL;
    sqlite3_stmt **statement = &stream->file[call->site.file].detail[detail];
    if (!*statement)
        *statement = prepare(stream, sql[detail], call->site.file, true);
    if (!*statement && stream->error == SQLITE_ERROR)
        *statement = prepare(stream, sql[detail], call->site.file, false);
    sqlite3_reset(*statement);
    sqlite3_bind_int64(*statement, 1, call->id);
    return *statement && sqlite3_step(*statement) == SQLITE_ROW ? *statement : NULL;
}

sqlite3_stmt *ct_stream_detail(struct ct_stream *stream, const struct ct_stream_call *call,
                               enum ct_detail *detail)
{
    *detail = detail_of(&call->site);
    sqlite3_stmt *row = ct_stream_detail_of(stream, call, *detail);
    if (!row)
        *detail = CT_DETAIL_NONE;
    return row;
}

/* ---- a growing trace ---- */

void ct_stream_rest(struct ct_stream *stream)
{
    sqlite3_finalize(stream->calls);
    stream->calls = NULL;
    for (uint32_t i = 0; i < stream->files; i++) {
        for (int d = 0; d < CT_DETAILS; d++)
            sqlite3_reset(stream->file[i].detail[d]);
    }
    if (!sqlite3_get_autocommit(stream->connection))
        sqlite3_exec(stream->connection, "COMMIT", NULL, NULL, NULL);
}

void ct_stream_look(struct ct_stream *stream, uint32_t file, enum ct_look look, int64_t from_ns,
                    int64_t to_ns, int64_t rows_max)
{
    ct_stream_rest(stream);
    stream->error = sqlite3_exec(stream->connection, "BEGIN", NULL, NULL, NULL);
    stream->is_look = true;
    stream->at = file;
    stream->rows = 0;
    stream->rows_max = rows_max;
    stream->position = from_ns - 1;
    if (stream->error == SQLITE_OK)
        stream->calls =
            ct_stream_ask(stream, look == CT_LOOK_ON ? ct_sql_stream_calls : ct_sql_stream_calls_back, file);
    sqlite3_bind_int64(stream->calls, 1, from_ns);
    sqlite3_bind_int64(stream->calls, 2, to_ns);
    sqlite3_bind_int64(stream->calls, 3, rows_max);
}

bool ct_stream_is_through(const struct ct_stream *stream)
{
    return stream->error == SQLITE_OK && (stream->rows_max < 0 || stream->rows < stream->rows_max);
}

int64_t ct_stream_position(const struct ct_stream *stream)
{
    return stream->position;
}

bool ct_stream_find(struct ct_stream *stream, int64_t call_id, struct ct_stream_call *call)
{
    const int64_t position = stream->position, rows = stream->rows;
    sqlite3_reset(stream->calls);
    sqlite3_bind_int64(stream->calls, 1, call_id);
    sqlite3_bind_int64(stream->calls, 2, call_id);
    const bool found = step(stream, stream->calls, stream->at, call);
    stream->position = position;
    stream->rows = rows;
    return found;
}

void ct_stream_forget_sites(struct ct_stream *stream)
{
    stream->epoch++;
}

sqlite3_stmt *ct_stream_ask(struct ct_stream *stream, const char *sql, uint32_t file)
{
    return prepare(stream, sql, file, true);
}

int ct_stream_error(const struct ct_stream *stream)
{
    return stream->error;
}
