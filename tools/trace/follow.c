#include "follow.h"

#include "clock.h"
#include "late_calls.h"
#include "trace_file.h"

#include "schema_sql.h"

#include <string.h>
#include <unistd.h>

/* The maximum number of rows that are read in one look (follow.h). Reading them takes a few hundredths of a
 * second. */
enum { ROWS_MAX = 20000 };
/* How often to search for later files, in case the next file has been removed. */
#define SEARCH_INTERVAL_NS UINT64_C(1000000000)

/* Identifies a file of the trace by the name of the trace's first file and the file's own number. */
struct place {
    char first[sizeof(((struct ct_series *)0)->path[0])]; /* empty: none */
    uint32_t number;
};

struct ct_follow {
    struct ct_follow_plan plan;
    sqlite3 *connection;
    struct ct_stream *stream;
    /* The newest open file. Until the next file is found, its name is ambiguous. "trace.2.db" may be the
     * second file of "trace.db", or the first file of "trace.2.db". */
    struct place place[2];
    char series[CT_SERIES_BYTES];
    uint32_t owner;  /* of the files */
    uint32_t at;     /* the file being read, among those of the connection, 0 being the newest */
    int64_t from_ns; /* the call_id at which reading continues in this file */
    struct ct_late_calls late;
    int64_t removed_before_ns; /* calls that returned before this time have been removed by the daemon */
    sqlite3_stmt *version;     /* queries the newest file's data_version, which changes when other processes
                                * write */
    int64_t seen_version;      /* that version at the last look or an earlier one */
    int64_t last_id;           /* the file's last call at the time of the last look */
    int64_t realtime_offset_ns;
    uint64_t looked_ns; /* when the last look was, if it read everything; 0: there is more to read */
    uint64_t searched_ns;
    uint32_t files, next; /* the number of the next file; 0: not found yet */
    bool has_missed, hurries;
    bool is_through; /* all rows of the file have been read in order */
    char problem[256];
};

static bool fail(struct ct_follow *follow, int rc)
{
    if (!*follow->problem)
        ct_trace_why(follow->connection, rc == SQLITE_OK ? SQLITE_NOMEM : rc, follow->problem,
                     sizeof(follow->problem));
    return false;
}

static bool is_wanted(const struct ct_follow *follow, const struct ct_stream_call *call)
{
    return call->id - call->start_ns >= follow->plan.least_ns &&
           (!follow->plan.is_failed_only || call->site.has_failed);
}

/* Runs a query of schema/stream.sql and returns the resulting number, or `otherwise` if there is none. */
static int64_t ask(struct ct_follow *follow, const char *sql, int64_t otherwise)
{
    sqlite3_stmt *row = ct_stream_ask(follow->stream, sql, follow->at);
    const bool has = row && sqlite3_step(row) == SQLITE_ROW && sqlite3_column_type(row, 0) == SQLITE_INTEGER;
    const int64_t number = has ? sqlite3_column_int64(row, 0) : otherwise;
    sqlite3_finalize(row);
    return number;
}

/* ---- where to begin ---- */

/* Reads backwards until enough wanted calls have been found. Reading will then start at the earliest of these
 * calls. */
static bool go_back(struct ct_follow *follow)
{
    int64_t left = follow->plan.last;
    for (uint32_t file = 0; left > 0 && file < ct_series_files(follow->connection); file++) {
        int64_t to_ns = INT64_MAX;
        do {
            struct ct_stream_call call;
            ct_stream_look(follow->stream, file, CT_LOOK_BACK, 0, to_ns, ROWS_MAX);
            while (left > 0 && ct_stream_next(follow->stream, &call)) {
                if (!is_wanted(follow, &call))
                    continue;
                follow->at = file;
                follow->from_ns = call.id;
                left--;
            }
            to_ns = ct_stream_position(follow->stream) - 1;
        } while (left > 0 && ct_stream_error(follow->stream) == SQLITE_OK &&
                 !ct_stream_is_through(follow->stream));
    }
    return ct_stream_error(follow->stream) == SQLITE_OK;
}

/* Finds the file and the position at which reading begins. Late calls before that position are not wanted. */
static bool find_start(struct ct_follow *follow)
{
    ct_stream_look(follow->stream, 0, CT_LOOK_ON, INT64_MAX, INT64_MAX, 0);
    follow->last_id = ask(follow, ct_sql_stream_last_call, 0);
    follow->from_ns = follow->last_id + 1;
    follow->removed_before_ns = ask(follow, ct_sql_stream_expired_before, 0);
    follow->looked_ns = follow->plan.start == CT_FOLLOW_NOW ? ct_monotonic_ns() : 0;
    bool good = ct_stream_error(follow->stream) == SQLITE_OK;
    if (follow->plan.start == CT_FOLLOW_FROM) {
        follow->at = ct_series_files(follow->connection) - 1;
        follow->from_ns = follow->plan.scope.from_ns;
    } else if (follow->plan.start == CT_FOLLOW_LAST) {
        good = good && go_back(follow);
    }
    const int64_t read_from_ns = follow->at > 0 ? follow->plan.scope.from_ns : follow->from_ns;
    good = good && ct_late_calls_pass(&follow->late, follow->stream, INT64_MIN, read_from_ns - 1);
    ct_stream_rest(follow->stream);
    return good;
}

struct ct_follow *ct_follow_begin(sqlite3 *connection, const struct ct_series *series,
                                  const struct ct_follow_plan *plan)
{
    struct ct_follow *follow = calloc(1, sizeof(*follow));
    if (!follow) {
        sqlite3_close(connection);
        ct_fail(0, "out of memory");
        return NULL;
    }
    follow->plan = *plan;
    follow->plan.scope.to_ns = INT64_MAX;
    if (plan->start != CT_FOLLOW_FROM)
        follow->plan.scope.from_ns = 0;
    follow->connection = connection;
    memcpy(follow->place[0].first, series->path[0], sizeof(follow->place[0].first));
    follow->place[0].number = 1;
    ct_trace_file_owner(series->path[0], &follow->owner);
    struct place *other = &follow->place[1];
    if (!ct_trace_split(series->path[0], other->first, sizeof(other->first), &other->number))
        *other->first = '\0';
    ct_ask_text(connection, "SELECT value FROM meta WHERE key = 'series'", 0, follow->series,
                sizeof(follow->series));
    follow->stream = ct_stream_open(connection, &follow->plan.scope);
    if (follow->stream && !find_start(follow)) {
        fail(follow, ct_stream_error(follow->stream));
        ct_fail(0, "cannot read the trace: %s", follow->problem);
    }
    if (follow->stream && !*follow->problem)
        return follow;
    ct_follow_end(follow);
    return NULL;
}

void ct_follow_end(struct ct_follow *follow)
{
    if (!follow)
        return;
    ct_stream_close(follow->stream);
    sqlite3_finalize(follow->version);
    sqlite3_close(follow->connection);
    ct_late_calls_finish(&follow->late);
    free(follow);
}

/* ---- the next file ---- */

/* Returns whether the trace has a file with this number of the same owner, and stores the file's path in
 * `path`. */
static bool has_file(const struct ct_follow *follow, const char *first, uint32_t number,
                     char path[sizeof(follow->place[0].first)])
{
    struct ct_trace_facts facts;
    return ct_trace_file(path, sizeof(follow->place[0].first), first, number) && access(path, F_OK) == 0 &&
           !ct_trace_file_is_foreign(first, number, follow->owner) &&
           ct_trace_inspect(path, &facts, NULL, 0) && strcmp(facts.series, follow->series) == 0;
}

/* Returns the number of the next file. If the daemon has already removed that file, returns the lowest later
 * number that exists. Returns 0 if there is no later file. */
static uint32_t find_after(const struct ct_follow *follow, const struct place *place, bool searches)
{
    char path[sizeof(place->first)];
    uint32_t next = 0;
    if (has_file(follow, place->first, place->number + 1, path))
        return place->number + 1;
    for (uint32_t number = UINT32_MAX;
         searches && (number = ct_trace_file_before(place->first, number, &follow->owner)) > place->number;)
        next = has_file(follow, place->first, number, path) ? number : next;
    return next;
}

static void find_next(struct ct_follow *follow)
{
    const uint64_t now_ns = ct_monotonic_ns();
    const bool searches = follow->hurries || now_ns - follow->searched_ns >= SEARCH_INTERVAL_NS;
    if (searches)
        follow->searched_ns = now_ns;
    for (int i = 0; i < 2 && !follow->next && *follow->series; i++) {
        const struct place found = follow->place[i];
        follow->next = *found.first ? find_after(follow, &found, searches) : 0;
        if (follow->next) { /* this interpretation was right */
            follow->place[0] = found;
            *follow->place[1].first = '\0';
        }
    }
}

/* Opens the next file, once the daemon writes no more calls to the current one. */
static bool go_on(struct ct_follow *follow)
{
    struct place *place = &follow->place[0];
    char path[sizeof(place->first)];
    sqlite3 *connection = NULL;
    struct ct_stream *stream = NULL;
    if (has_file(follow, place->first, follow->next, path) &&
        ct_trace_file_open(path, &connection) == SQLITE_OK)
        stream = ct_stream_open(connection, &follow->plan.scope);
    if (!stream) { /* the daemon has removed the file since it was found */
        sqlite3_close(connection);
        follow->has_missed = true;
        follow->next = 0;
        return false;
    }
    ct_stream_rest(stream);
    ct_stream_close(follow->stream);
    sqlite3_finalize(follow->version);
    sqlite3_close(follow->connection);
    follow->version = NULL;
    follow->seen_version = INT64_MIN; /* data_versions of different connections cannot be compared */
    follow->has_missed |= follow->next > place->number + 1;
    follow->connection = connection;
    follow->stream = stream;
    place->number = follow->next;
    follow->files++;
    follow->next = 0;
    follow->at = 0;
    follow->from_ns = follow->plan.scope.from_ns;
    follow->looked_ns = ct_monotonic_ns();
    ct_late_calls_clear(&follow->late);
    follow->removed_before_ns = 0;
    return true;
}

/* ---- looks ---- */

/* Checks whether the daemon has removed calls since the last look, some of which may not have been read. A
 * late call that is stored afterwards, with a time before `removed_before_ns`, is kept until that time
 * changes. */
static void note_removed(struct ct_follow *follow)
{
    const int64_t before_ns = ask(follow, ct_sql_stream_expired_before, 0);
    if (before_ns == follow->removed_before_ns)
        return;
    const int64_t read_ns = follow->looked_ns ? (int64_t)follow->looked_ns : follow->from_ns;
    follow->has_missed |= before_ns > read_ns;
    follow->removed_before_ns = before_ns;
    ct_stream_forget_sites(follow->stream);
    ct_late_calls_forget(&follow->late, before_ns);
}

bool ct_follow_has_news(struct ct_follow *follow)
{
    const int64_t seen = follow->seen_version;
    if (!follow->next)
        find_next(follow);
    if (!follow->version)
        sqlite3_prepare_v2(follow->connection, "PRAGMA data_version", -1, &follow->version, NULL);
    const bool is_known = follow->version && sqlite3_step(follow->version) == SQLITE_ROW;
    follow->seen_version = is_known ? sqlite3_column_int64(follow->version, 0) : seen;
    sqlite3_reset(follow->version);
    return !is_known || follow->seen_version != seen || follow->next || follow->late.is_deferred ||
           follow->hurries;
}

bool ct_follow_look(struct ct_follow *follow)
{
    follow->is_through = false;
    ct_stream_look(follow->stream, follow->at, CT_LOOK_ON, follow->from_ns, INT64_MAX, ROWS_MAX);
    follow->last_id = ask(follow, ct_sql_stream_last_call, follow->last_id);
    follow->realtime_offset_ns = ask(follow, ct_sql_stream_realtime_offset, 0);
    if (follow->at == 0)
        note_removed(follow);
    return ct_stream_error(follow->stream) == SQLITE_OK || fail(follow, ct_stream_error(follow->stream));
}

/* Advances the reading position past the last row read in order. */
static bool pass(struct ct_follow *follow)
{
    const int64_t position = ct_stream_position(follow->stream), from_ns = follow->from_ns;
    follow->from_ns = position + 1;
    return follow->at > 0 || ct_late_calls_pass(&follow->late, follow->stream, from_ns, position);
}

bool ct_follow_next(struct ct_follow *follow, struct ct_stream_call *call)
{
    while (!follow->is_through && ct_stream_next(follow->stream, call)) {
        if (is_wanted(follow, call))
            return true;
    }
    if (!follow->is_through && ct_stream_is_through(follow->stream)) {
        follow->is_through = true;
        if (!pass(follow) ||
            (follow->at == 0 && !ct_late_calls_find(&follow->late, follow->stream, follow->hurries)))
            return fail(follow, ct_stream_error(follow->stream));
    }
    int64_t id;
    while (follow->is_through && ct_late_calls_next(&follow->late, &id)) {
        if (id >= follow->plan.scope.from_ns && ct_stream_find(follow->stream, id, call) &&
            is_wanted(follow, call))
            return true;
    }
    return false;
}

/* Saves the results of the look before its transaction ends. */
static bool settle(struct ct_follow *follow)
{
    const bool is_good = ct_stream_error(follow->stream) == SQLITE_OK && !*follow->problem &&
                         (follow->is_through || pass(follow));
    follow->is_through &= !ct_late_calls_are_left(&follow->late);
    return (is_good && ct_late_calls_settle(&follow->late)) || fail(follow, ct_stream_error(follow->stream));
}

bool ct_follow_rest(struct ct_follow *follow)
{
    const bool is_good = settle(follow);
    ct_stream_rest(follow->stream);
    if (!is_good)
        return false;
    follow->looked_ns = follow->is_through ? ct_monotonic_ns() : 0;
    if (!follow->is_through)
        return true;
    if (follow->at > 0) {
        follow->at--;
        follow->from_ns = follow->plan.scope.from_ns;
        return true;
    }
    /* The daemon may write to this file until it has created the next one. Therefore, a query reads
     * everything only if it begins after the next file has been found. */
    if (follow->next)
        return go_on(follow);
    find_next(follow);
    return follow->next != 0;
}

void ct_follow_hurry(struct ct_follow *follow)
{
    follow->hurries = true;
}

struct ct_stream *ct_follow_stream(struct ct_follow *follow)
{
    return follow->stream;
}
int64_t ct_follow_realtime_offset_ns(const struct ct_follow *follow)
{
    return follow->realtime_offset_ns;
}
uint32_t ct_follow_files(const struct ct_follow *follow)
{
    return follow->files;
}
int64_t ct_follow_position(const struct ct_follow *follow)
{
    return follow->at > 0 ? 0 : follow->from_ns - 1;
}
int64_t ct_follow_last(const struct ct_follow *follow)
{
    return follow->last_id;
}
bool ct_follow_has_missed(struct ct_follow *follow)
{
    const bool missed = follow->has_missed;
    follow->has_missed = false;
    return missed;
}
const char *ct_follow_problem(const struct ct_follow *follow)
{
    return *follow->problem ? follow->problem : NULL;
}
