#include "late_calls.h"

#include "clock.h"
#include "room.h"

#include "schema_sql.h"

#include <stdlib.h>
#include <string.h>

/* The ratio of the pause between two searches to the duration of the last search. */
enum { PAUSE_FACTOR = 20 };

static bool add(int64_t **ids, size_t *count, size_t *room, int64_t id)
{
    if (!ct_make_room(ids, *count, room, sizeof(**ids)))
        return false;
    (*ids)[(*count)++] = id;
    return true;
}

bool ct_late_calls_pass(struct ct_late_calls *late, struct ct_stream *stream, int64_t from_ns, int64_t to_ns)
{
    if (from_ns > to_ns)
        return true;
    sqlite3_stmt *rows = ct_stream_ask(stream, ct_sql_stream_late_calls, 0);
    sqlite3_bind_int64(rows, 1, from_ns);
    sqlite3_bind_int64(rows, 2, to_ns);
    bool good = rows != NULL;
    int rc = SQLITE_DONE;
    while (good && (rc = sqlite3_step(rows)) == SQLITE_ROW)
        good = add(&late->seen, &late->seen_count, &late->seen_room, sqlite3_column_int64(rows, 0));
    sqlite3_finalize(rows);
    return good && rc == SQLITE_DONE;
}

/* Counts the file's late calls. Returns false if SQLite failed. */
static bool count_rows(struct ct_stream *stream, size_t *count)
{
    sqlite3_stmt *row = ct_stream_ask(stream, ct_sql_stream_count_late, 0);
    const bool good = row && sqlite3_step(row) == SQLITE_ROW;
    *count = good ? (size_t)sqlite3_column_int64(row, 0) : 0;
    sqlite3_finalize(row);
    return good;
}

/* Compares all late calls in the file with those already seen. Both are sorted. */
static bool compare(struct ct_late_calls *late, struct ct_stream *stream)
{
    sqlite3_stmt *rows = ct_stream_ask(stream, ct_sql_stream_late_calls, 0);
    sqlite3_bind_int64(rows, 1, INT64_MIN);
    sqlite3_bind_int64(rows, 2, INT64_MAX);
    bool good = rows != NULL;
    int rc = SQLITE_DONE;
    size_t at = 0;
    while (good && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        const int64_t id = sqlite3_column_int64(rows, 0);
        while (at < late->seen_count && late->seen[at] < id)
            at++;
        if (at == late->seen_count || late->seen[at] != id)
            good = add(&late->fresh, &late->fresh_count, &late->fresh_room, id);
    }
    sqlite3_finalize(rows);
    return good && rc == SQLITE_DONE;
}

bool ct_late_calls_find(struct ct_late_calls *late, struct ct_stream *stream, bool at_once)
{
    const uint64_t now_ns = ct_monotonic_ns();
    size_t count = 0;
    late->fresh_count = late->given = 0;
    late->is_deferred = now_ns < late->due_ns && !at_once;
    if (late->is_deferred)
        return true;
    const bool good = count_rows(stream, &count) && (count == late->seen_count || compare(late, stream));
    late->due_ns = now_ns + PAUSE_FACTOR * (ct_monotonic_ns() - now_ns);
    return good;
}

bool ct_late_calls_next(struct ct_late_calls *late, int64_t *call_id)
{
    if (late->given == late->fresh_count)
        return false;
    *call_id = late->fresh[late->given++];
    return true;
}

bool ct_late_calls_are_left(const struct ct_late_calls *late)
{
    return late->given < late->fresh_count;
}

bool ct_late_calls_settle(struct ct_late_calls *late)
{
    size_t more = late->given, old = late->seen_count;
    if (more > 0 && !ct_make_room_for(&late->seen, old, more, &late->seen_room, sizeof(*late->seen)))
        return false;
    /* Merge from the end, where the free space is. */
    for (size_t to = old + more; more > 0; to--) {
        const bool is_old = old > 0 && late->seen[old - 1] > late->fresh[more - 1];
        late->seen[to - 1] = is_old ? late->seen[--old] : late->fresh[--more];
    }
    late->seen_count += late->given;
    late->fresh_count = late->given = 0;
    return true;
}

void ct_late_calls_forget(struct ct_late_calls *late, int64_t before_ns)
{
    size_t gone = 0;
    while (gone < late->seen_count && late->seen[gone] < before_ns)
        gone++;
    late->seen_count -= gone;
    if (gone)
        memmove(late->seen, late->seen + gone, late->seen_count * sizeof(*late->seen));
}

void ct_late_calls_clear(struct ct_late_calls *late)
{
    late->seen_count = late->fresh_count = late->given = 0;
    late->due_ns = 0;
    late->is_deferred = false;
}

void ct_late_calls_finish(struct ct_late_calls *late)
{
    free(late->seen);
    free(late->fresh);
}
