/* Keeps the calls that caused GPU work in a temporary database. */
#include "export_work.h"

#include "schema_sql.h"

#include <stdlib.h>
#include <string.h>

#define STATEMENTS(ROW) ROW(cause) ROW(note) ROW(size) ROW(find)
enum statement {
#define ROW(name) STATEMENT_##name,
    STATEMENTS(ROW)
#undef ROW
        STATEMENTS_COUNT
};

/* Columns of ct_sql_exports_gpu_work. */
enum {
    COLUMN_PROCESS,
    COLUMN_DEVICE,
    COLUMN_CONTEXT,
    COLUMN_STREAM,
    COLUMN_START,
    COLUMN_END,
    COLUMN_KIND,
    COLUMN_KERNEL,
    COLUMN_MANGLED,
    COLUMN_COPY_KIND,
    COLUMN_BYTES,
    COLUMN_GRAPH,
    COLUMN_NODE,
    COLUMN_CALL
};

/* Columns of a launch's details (schema/stream.sql). */
enum { LAUNCH_COLUMN_GRID_X = 1 };

struct ct_export_work {
    sqlite3 *file;
    sqlite3_stmt *statement[STATEMENTS_COUNT];
    bool has_work, failed;
    ct_work_write *write;
    /* The stream of the last piece of work, and the times when the stream's lanes end. */
    int64_t process_id, device, context, stream, stream_number;
    int64_t until_ns[CT_WORK_LANES];
    int lanes;
};

/* Runs the statement that has been bound, and clears the bindings. */
static void run(struct ct_export_work *work, enum statement statement)
{
    work->failed |= sqlite3_step(work->statement[statement]) != SQLITE_DONE;
    sqlite3_reset(work->statement[statement]);
    sqlite3_clear_bindings(work->statement[statement]);
}

static bool note_cause(struct ct_export *to, sqlite3_stmt *row)
{
    sqlite3_bind_int64(to->work->statement[STATEMENT_cause], 1, sqlite3_column_int64(row, 0));
    run(to->work, STATEMENT_cause);
    to->work->has_work = true;
    return !to->work->failed;
}

bool ct_work_begin(struct ct_export *to, bool has_no_causes)
{
    static const char *const sql[STATEMENTS_COUNT] = {
#define ROW(name) ct_sql_causes_##name,
        STATEMENTS(ROW)
#undef ROW
    };
    struct ct_export_work *work = to->work = calloc(1, sizeof(*work));
    if (work && has_no_causes)
        return true;
    /* SQLite deletes a database without a name when it is closed. */
    if (!work || sqlite3_open("", &work->file) != SQLITE_OK ||
        sqlite3_exec(work->file, ct_sql_causes_table, NULL, NULL, NULL) != SQLITE_OK)
        return false;
    for (int i = 0; i < STATEMENTS_COUNT; i++) {
        if (sqlite3_prepare_v3(work->file, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &work->statement[i],
                               NULL) != SQLITE_OK)
            return false;
    }
    return ct_export_each_of_newer(to, ct_sql_exports_gpu_causes, note_cause);
}

bool ct_work_note_call(struct ct_export *to, const struct ct_event *event)
{
    struct ct_export_work *work = to->work;
    const struct ct_site *site = &event->call.site;
    if (!work->has_work || site->kind != CT_SITE_CALL ||
        (strcmp(site->layer, "driver") != 0 && strcmp(site->layer, "runtime") != 0))
        return false;
    const int64_t outermost_id = event->around.outermost_id;
    sqlite3_stmt *row = work->statement[STATEMENT_note];
    sqlite3_bind_int64(row, 1, event->call.id);
    sqlite3_bind_int64(row, 2, outermost_id ? outermost_id : event->call.id);
    sqlite3_bind_int64(row, 3, site->tid);
    sqlite3_bind_int64(row, 4, event->call.start_ns);
    run(work, STATEMENT_note);
    if (sqlite3_changes(work->file) == 0)
        return false;
    enum ct_detail detail;
    sqlite3_stmt *launch = ct_stream_detail(to->stream, &event->call, &detail);
    if (!launch || detail != CT_DETAIL_LAUNCH)
        return true;
    row = work->statement[STATEMENT_size];
    sqlite3_bind_int64(row, 1, event->call.id);
    for (int i = 0; i < CT_LAUNCH_SIZES; i++)
        sqlite3_bind_int64(row, i + 2, sqlite3_column_int64(launch, LAUNCH_COLUMN_GRID_X + i));
    run(work, STATEMENT_size);
    return true;
}

static struct ct_cause find_cause(struct ct_export_work *work, int64_t call_id)
{
    sqlite3_stmt *row = work->statement[STATEMENT_find];
    struct ct_cause cause = { 0 };
    sqlite3_bind_int64(row, 1, call_id);
    if (row && call_id && sqlite3_step(row) == SQLITE_ROW) {
        cause = (struct ct_cause){ .call_id = call_id,
                                   .correlation = sqlite3_column_int64(row, 0),
                                   .tid = sqlite3_column_int64(row, 1),
                                   .start_ns = sqlite3_column_int64(row, 2) };
        for (int i = 0; i < CT_LAUNCH_SIZES; i++)
            cause.size[i] = sqlite3_column_int64(row, 3 + i);
    }
    sqlite3_reset(row);
    return cause;
}

void ct_work_lane_name(const struct ct_work *work, char name[CT_WORK_LANE_NAME_BYTES])
{
    const int used = snprintf(name, CT_WORK_LANE_NAME_BYTES, "GPU %lld, stream %lld", (long long)work->device,
                              (long long)work->stream);
    if (work->lane > 0)
        snprintf(name + used, CT_WORK_LANE_NAME_BYTES - (size_t)used, " (%d)", work->lane + 1);
}

/* If a piece overlaps pieces in all lanes, it is put into the last lane. */
static void place_in_lane(struct ct_export_work *work, struct ct_work *piece)
{
    if (work->stream_number == 0 || piece->process_id != work->process_id || piece->device != work->device ||
        piece->context != work->context || piece->stream != work->stream) {
        work->process_id = piece->process_id;
        work->device = piece->device;
        work->context = piece->context;
        work->stream = piece->stream;
        work->stream_number++;
        work->lanes = 0;
    }
    int lane = 0;
    while (lane < work->lanes && lane < CT_WORK_LANES - 1 && work->until_ns[lane] > piece->start_ns)
        lane++;
    piece->stream_number = work->stream_number;
    piece->lane = lane;
    piece->is_first_in_lane = lane == work->lanes;
    work->lanes += piece->is_first_in_lane;
    work->until_ns[lane] = piece->end_ns;
}

static bool write_piece(struct ct_export *to, sqlite3_stmt *row)
{
    struct ct_work piece = {
        .process_id = sqlite3_column_int64(row, COLUMN_PROCESS),
        .device = sqlite3_column_int64(row, COLUMN_DEVICE),
        .context = sqlite3_column_int64(row, COLUMN_CONTEXT),
        .stream = sqlite3_column_int64(row, COLUMN_STREAM),
        .start_ns = sqlite3_column_int64(row, COLUMN_START),
        .end_ns = sqlite3_column_int64(row, COLUMN_END),
        .kind = ct_export_text(row, COLUMN_KIND),
        .kernel = ct_export_text(row, COLUMN_KERNEL),
        .mangled = (const char *)sqlite3_column_text(row, COLUMN_MANGLED),
        .copy_kind = (const char *)sqlite3_column_text(row, COLUMN_COPY_KIND),
        .bytes = sqlite3_column_int64(row, COLUMN_BYTES),
        .graph = sqlite3_column_int64(row, COLUMN_GRAPH),
        .node = sqlite3_column_int64(row, COLUMN_NODE),
        .cause = find_cause(to->work, sqlite3_column_int64(row, COLUMN_CALL)),
    };
    if (piece.node) /* the sizes belong to another launch */
        memset(piece.cause.size, 0, sizeof(piece.cause.size));
    place_in_lane(to->work, &piece);
    return to->work->write(to, &piece);
}

bool ct_work_each(struct ct_export *to, ct_work_write *write)
{
    to->work->write = write;
    return !to->work->failed && ct_export_each_of_newer(to, ct_sql_exports_gpu_work, write_piece);
}

void ct_work_finish(struct ct_export *to)
{
    struct ct_export_work *work = to->work;
    if (!work)
        return;
    ct_export_note_error(work->file);
    for (int i = 0; i < STATEMENTS_COUNT; i++)
        sqlite3_finalize(work->statement[i]);
    sqlite3_close(work->file);
    free(work);
    to->work = NULL;
}
