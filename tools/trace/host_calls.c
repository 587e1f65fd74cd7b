#include "host_calls.h"

#include "call_stream.h"
#include "intern.h"
#include "room.h"

#include <stdlib.h>
#include <string.h>

/* The number of calls that are kept, a power of two. Tests use fewer. */
#ifndef CT_HOST_CALLS_KEPT
#define CT_HOST_CALLS_KEPT (UINT64_C(1) << 18)
#endif

struct kept {
    int64_t start_ns, end_ns;
    const char *name, *category; /* name: NULL for a call that is not the driver's */
    uint64_t before;             /* the number of the thread's driver call before; 0: none */
};

struct ct_host_calls {
    sqlite3 *connection;
    struct ct_stream *stream;
    struct kept *kept;        /* call N is at N % CT_HOST_CALLS_KEPT */
    uint64_t count;           /* the number of the newest call; the first call has the number 1 */
    struct ct_intern threads; /* the values are places in `last` */
    uint64_t *last;           /* by thread: the number of its newest driver call */
    size_t thread_count, thread_room;
    /* The current search. */
    uint64_t at;         /* number of the next kept call; 0: none */
    int64_t after_ns;    /* its end */
    sqlite3_stmt *query; /* for calls that are no longer kept */
    bool is_querying;
    char **text; /* names that the query has returned */
    size_t texts, text_room;
    int error;
};

struct ct_host_calls *ct_host_calls_open(sqlite3 *connection)
{
    struct ct_host_calls *calls = calloc(1, sizeof(*calls));
    const struct ct_scope scope = ct_scope_all();
    if (!calls)
        return NULL;
    calls->connection = connection;
    ct_intern_init(&calls->threads, 2 * sizeof(int64_t), SIZE_MAX, 1);
    calls->kept = malloc(CT_HOST_CALLS_KEPT * sizeof(*calls->kept));
    calls->stream = ct_stream_open(connection, &scope);
    if (calls->kept && calls->stream)
        return calls;
    ct_host_calls_close(calls);
    return NULL;
}

void ct_host_calls_close(struct ct_host_calls *calls)
{
    if (!calls)
        return;
    for (size_t i = 0; i < calls->texts; i++)
        free(calls->text[i]);
    free(calls->text);
    sqlite3_finalize(calls->query);
    if (calls->stream)
        ct_stream_close(calls->stream);
    ct_intern_finish(&calls->threads);
    free(calls->last);
    free(calls->kept);
    free(calls);
}

static void fail(struct ct_host_calls *calls, int error)
{
    if (calls->error == SQLITE_OK)
        calls->error = error;
}

int ct_host_calls_error(const struct ct_host_calls *calls)
{
    return calls->error;
}

static struct kept *kept_at(const struct ct_host_calls *calls, uint64_t number)
{
    return &calls->kept[number % CT_HOST_CALLS_KEPT];
}

/* Returns the place of the newest driver call of the call's thread, or NULL if out of memory. */
static uint64_t *last_of(struct ct_host_calls *calls, const struct ct_site *site)
{
    const int64_t key[] = { site->process_id, site->tid };
    bool is_new;
    const int64_t number = ct_intern_get(&calls->threads, key, &is_new);
    if (number == 0 || (is_new && !ct_make_room(&calls->last, calls->thread_count, &calls->thread_room,
                                                sizeof(*calls->last))))
        return NULL;
    if (is_new)
        calls->last[calls->thread_count++] = 0;
    return &calls->last[number - 1];
}

static bool read_call(struct ct_host_calls *calls)
{
    struct ct_stream_call call;
    if (calls->error != SQLITE_OK || !ct_stream_next(calls->stream, &call)) {
        fail(calls, ct_stream_error(calls->stream));
        return false;
    }
    uint64_t *last = last_of(calls, &call.site);
    if (!last) {
        fail(calls, SQLITE_NOMEM);
        return false;
    }
    const bool is_driver = call.site.kind == CT_SITE_CALL && strcmp(call.site.layer, "driver") == 0;
    *kept_at(calls, ++calls->count) = (struct kept){ .start_ns = call.start_ns,
                                                     .end_ns = call.id,
                                                     .name = is_driver ? call.site.name : NULL,
                                                     .category = call.site.category,
                                                     .before = *last };
    if (is_driver)
        *last = calls->count;
    return true;
}

static uint64_t oldest_kept(const struct ct_host_calls *calls)
{
    return calls->count > CT_HOST_CALLS_KEPT ? calls->count - CT_HOST_CALLS_KEPT + 1 : 1;
}

/* Returns the number of a kept call, or 0 if it is not kept. */
static uint64_t number_of(const struct ct_host_calls *calls, int64_t call_id)
{
    uint64_t low = oldest_kept(calls), high = calls->count + 1;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (kept_at(calls, middle)->end_ns < call_id)
            low = middle + 1;
        else
            high = middle;
    }
    return low <= calls->count && kept_at(calls, low)->end_ns == call_id ? low : 0;
}

/* Continues with calls up to `call_id` that are no longer kept. */
static void query(struct ct_host_calls *calls, int64_t call_id)
{
    /* SQLite 3.40.1 ignores ORDER BY if the view is joined with itself instead. */
    static const char sql[] =
        "SELECT start_ns, call_id, name, category FROM calls "
        "WHERE call_id > ?2 AND call_id <= ?1 AND layer = 'driver' AND (process_id, tid) = "
        "(SELECT process_id, tid FROM calls WHERE call_id = ?1) ORDER BY call_id DESC";
    if (!calls->query)
        fail(calls, sqlite3_prepare_v2(calls->connection, sql, -1, &calls->query, NULL));
    sqlite3_reset(calls->query);
    sqlite3_bind_int64(calls->query, 1, call_id);
    sqlite3_bind_int64(calls->query, 2, calls->after_ns);
    calls->is_querying = calls->query != NULL;
}

void ct_host_calls_find(struct ct_host_calls *calls, int64_t call_id, int64_t after_ns)
{
    while ((calls->count == 0 || kept_at(calls, calls->count)->end_ns < call_id) && read_call(calls))
        ;
    const uint64_t number = number_of(calls, call_id);
    calls->after_ns = after_ns;
    calls->is_querying = false;
    calls->at = 0;
    if (number > 0)
        calls->at = kept_at(calls, number)->name ? number : kept_at(calls, number)->before;
    else if (oldest_kept(calls) > 1 && call_id < kept_at(calls, oldest_kept(calls))->end_ns)
        query(calls, call_id);
}

/* Returns the string, kept until the calls are closed. Functions are few. */
static const char *keep_text(struct ct_host_calls *calls, const unsigned char *given)
{
    const char *text = given ? (const char *)given : "";
    for (size_t i = 0; i < calls->texts; i++) {
        if (strcmp(calls->text[i], text) == 0)
            return calls->text[i];
    }
    char *copy = ct_make_room(&calls->text, calls->texts, &calls->text_room, sizeof(*calls->text))
                     ? strdup(text)
                     : NULL;
    if (copy)
        calls->text[calls->texts++] = copy;
    else
        fail(calls, SQLITE_NOMEM);
    return copy ? copy : "";
}

static bool next_queried(struct ct_host_calls *calls, struct ct_host_call *call)
{
    const int rc = sqlite3_step(calls->query);
    calls->is_querying = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW) {
        fail(calls, rc == SQLITE_DONE ? SQLITE_OK : rc);
        sqlite3_reset(calls->query);
        return false;
    }
    *call = (struct ct_host_call){ .start_ns = sqlite3_column_int64(calls->query, 0),
                                   .end_ns = sqlite3_column_int64(calls->query, 1),
                                   .name = keep_text(calls, sqlite3_column_text(calls->query, 2)),
                                   .category = keep_text(calls, sqlite3_column_text(calls->query, 3)) };
    return true;
}

bool ct_host_calls_next(struct ct_host_calls *calls, struct ct_host_call *call)
{
    if (calls->is_querying)
        return next_queried(calls, call);
    if (calls->at == 0)
        return false;
    const struct kept *kept = kept_at(calls, calls->at);
    if (kept->end_ns <= calls->after_ns) {
        calls->at = 0;
        return false;
    }
    *call = (struct ct_host_call){
        .start_ns = kept->start_ns, .end_ns = kept->end_ns, .name = kept->name, .category = kept->category
    };
    calls->at = kept->before;
    if (calls->at > 0 && calls->at < oldest_kept(calls)) {
        calls->at = 0;
        query(calls, kept->end_ns);
        /* The query returns this call once more. */
        struct ct_host_call again;
        next_queried(calls, &again);
    }
    return true;
}
