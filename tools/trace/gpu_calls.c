/* The correlations of a process ascend with its calls, and work is done in about the same order. Therefore, a
 * page of neighbouring correlations is read at once, because starting a query costs as much as
 * reading ten rows. */
#include "gpu_calls.h"

#include "series.h"
#include "trace_file.h"

#include "schema_sql.h"

#include <stdbool.h>
#include <stdlib.h>

enum { PAGE_ROWS = 64, PAGES = 4096 };

/* The calls of the correlations from `first` on. */
struct page {
    bool is_read;
    uint32_t file;
    int64_t process_id, first;
    int64_t call_id[PAGE_ROWS];
};

struct ct_gpu_calls {
    sqlite3 *connection;
    int64_t oldest_ns;                                                   /* an older call is unknown */
    sqlite3_stmt *own[CT_SERIES_FILES_MAX], *later[CT_SERIES_FILES_MAX]; /* NULL: not used yet */
    int error;
    struct page page[PAGES]; /* the place follows from the contents */
};

static sqlite3_stmt *prepare(struct ct_gpu_calls *calls, const char *sql, uint32_t file)
{
    sqlite3_stmt *query = NULL;
    const int rc = ct_series_prepare(calls->connection, sql, file, &query);
    if (calls->error == SQLITE_OK)
        calls->error = rc;
    return query;
}

/* In a trace of several files, or of a chosen run, the view leaves out calls that are older than all calls in
 * the oldest file. */
static void find_oldest(struct ct_gpu_calls *calls)
{
    calls->oldest_ns = INT64_MIN;
    if (!ct_series_has_views(calls->connection))
        return;
    sqlite3_stmt *query = prepare(calls, ct_sql_gpu_runs_oldest_call, ct_series_files(calls->connection) - 1);
    if (query && sqlite3_step(query) == SQLITE_ROW)
        calls->oldest_ns = sqlite3_column_int64(query, 0);
    const int rc = sqlite3_finalize(query);
    if (calls->error == SQLITE_OK)
        calls->error = rc;
}

struct ct_gpu_calls *ct_gpu_calls_open(sqlite3 *connection)
{
    struct ct_gpu_calls *calls = calloc(1, sizeof(*calls));
    if (!calls)
        return NULL;
    calls->connection = connection;
    find_oldest(calls);
    return calls;
}

void ct_gpu_calls_close(struct ct_gpu_calls *calls)
{
    if (!calls)
        return;
    for (uint32_t i = 0; i < CT_SERIES_FILES_MAX; i++) {
        sqlite3_finalize(calls->own[i]);
        sqlite3_finalize(calls->later[i]);
    }
    free(calls);
}

int ct_gpu_calls_error(const struct ct_gpu_calls *calls)
{
    return calls->error;
}

/* Adds the calls that a query finds to a page. A call that is already known remains. */
static void add_calls(struct ct_gpu_calls *calls, struct page *page, sqlite3_stmt *query)
{
    int rc = SQLITE_DONE;
    sqlite3_bind_int64(query, 1, page->process_id);
    sqlite3_bind_int64(query, 2, page->first);
    sqlite3_bind_int64(query, 3, page->first + PAGE_ROWS - 1);
    while (query && (rc = sqlite3_step(query)) == SQLITE_ROW) {
        int64_t *call_id = &page->call_id[sqlite3_column_int64(query, 0) - page->first];
        if (*call_id == CT_GPU_NO_CALL)
            *call_id = sqlite3_column_int64(query, 1);
    }
    sqlite3_reset(query);
    if (rc != SQLITE_DONE && calls->error == SQLITE_OK)
        calls->error = rc;
}

/* Reads a page from the file of the work, and from all later files, because work may be stored before its
 * call. */
static void read_page(struct ct_gpu_calls *calls, struct page *page)
{
    const uint32_t file = page->file;
    for (int i = 0; i < PAGE_ROWS; i++)
        page->call_id[i] = CT_GPU_NO_CALL;
    if (!calls->own[file])
        calls->own[file] = prepare(calls, ct_sql_gpu_runs_calls, file);
    add_calls(calls, page, calls->own[file]);
    for (uint32_t later = file; later-- > 0;) {
        if (!calls->later[later])
            calls->later[later] = prepare(calls, ct_sql_gpu_runs_later_calls, later);
        add_calls(calls, page, calls->later[later]);
    }
    for (int i = 0; i < PAGE_ROWS; i++) {
        if (page->call_id[i] < calls->oldest_ns)
            page->call_id[i] = CT_GPU_NO_CALL;
    }
}

int64_t ct_gpu_calls_find(struct ct_gpu_calls *calls, uint32_t file, int64_t process_id, int64_t correlation)
{
    const int64_t row = correlation & (PAGE_ROWS - 1), first = correlation - row;
    /* The factors give the same correlations of several processes and files different places. */
    const uint64_t place = (uint64_t)first / PAGE_ROWS + 977 * (uint64_t)process_id + 31 * (uint64_t)file;
    struct page *page = &calls->page[place % PAGES];
    if (!page->is_read || page->first != first || page->process_id != process_id || page->file != file) {
        page->is_read = true;
        page->file = file;
        page->process_id = process_id;
        page->first = first;
        read_page(calls, page);
    }
    return page->call_id[row];
}
