#include "own_time.h"

#include "call_stream.h"
#include "computed_table.h"
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

/* Calls of a thread that are not inside another call, as far as is known. */
struct outer {
    int64_t start_ns;             /* of the first of them */
    int64_t total_ns, counted_ns; /* of all of them, and of those that returned in the window */
    int64_t own_ns[OWN_LAYERS];
};

struct interval {
    int64_t from_ns, to_ns;
};

/* A call takes the calls that began after it off the end of the list, because they are inside it. */
struct own_thread {
    int64_t process_id;
    struct outer *outer;
    size_t count, room, full;            /* full: the count at which calls are forgotten */
    int64_t first_ns, last_ns, outer_ns; /* of calls that returned in the window */
    struct interval *open;               /* long calls that have begun */
    size_t opens, opens_room;
};

struct own_row {
    int64_t process_id;
    const char *layer_name, *name; /* the name is valid as long as the stream; after that, a copy */
    enum own_layer layer;
    int64_t calls, total_ns, own_ns, inside_ns[OWN_LAYERS];
};

/* The thread and the row of a site's calls, which follow from other properties of the site. */
struct own_place {
    uint64_t number; /* of the site; 0: unused */
    size_t thread, row;
};
enum { PLACES = 1 << 12, OUTER_FEW = 1 << 8, OUTER_MOST = 1 << 15 };

struct own_times {
    struct ct_stream *stream;
    struct own_place place[PLACES];  /* by the number of the site */
    struct ct_stream_call long_call; /* the next long call */
    bool has_long;
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

static struct own_thread *thread_of(struct own_times *times, const struct ct_site *site)
{
    const int64_t key[] = { site->process_id, site->tid };
    bool is_new;
    struct own_thread *thread = entry_of(&times->threads_found, key, &times->thread, &times->threads,
                                         &times->threads_room, sizeof(*thread), &is_new);
    if (thread && is_new)
        *thread =
            (struct own_thread){ .process_id = site->process_id, .first_ns = INT64_MAX, .full = OUTER_FEW };
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

/* Finds the thread and the row of a site's calls. Returns false if out of memory. */
static bool find_place(struct own_times *times, const struct ct_site *site, struct own_thread **thread,
                       struct own_row **row)
{
    struct own_place *place = &times->place[site->number % PLACES];
    if (place->number == site->number) {
        *thread = &times->thread[place->thread];
        *row = &times->row[place->row];
        return true;
    }
    *thread = thread_of(times, site);
    *row = row_of(times, site->process_id, site);
    if (!*thread || !*row)
        return false;
    *place =
        (struct own_place){ site->number, (size_t)(*thread - times->thread), (size_t)(*row - times->row) };
    return true;
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

/* ---- forgetting calls ---- */

/* Notes the long calls that begin before a time. Returns false if out of memory. */
static bool note_long_calls(struct own_times *times, int64_t before_ns)
{
    for (; times->has_long && times->long_call.start_ns < before_ns;
         times->has_long = ct_stream_next_long(times->stream, &times->long_call)) {
        const struct ct_stream_call *call = &times->long_call;
        struct own_thread *thread = call->site.kind == CT_SITE_CALL ? thread_of(times, &call->site) : NULL;
        if (call->site.kind != CT_SITE_CALL)
            continue;
        if (!thread ||
            !ct_make_room(&thread->open, thread->opens, &thread->opens_room, sizeof(*thread->open)))
            return false;
        thread->open[thread->opens++] = (struct interval){ call->start_ns, call->id };
    }
    return true;
}

/* Returns when the first call began that may enclose calls of the thread and has not returned at `now_ns`. A
 * call that is not long began at most CT_STREAM_LONG_NS ago. */
static int64_t enclosed_from(struct own_thread *thread, int64_t now_ns)
{
    int64_t from_ns = now_ns - CT_STREAM_LONG_NS;
    size_t kept = 0;
    for (size_t i = 0; i < thread->opens; i++) {
        const struct interval *open = &thread->open[i];
        if (open->to_ns < now_ns)
            continue;
        from_ns = open->from_ns < from_ns ? open->from_ns : from_ns;
        thread->open[kept++] = *open;
    }
    thread->opens = kept;
    return from_ns;
}

/* Makes room in a full list: forgets calls that no later call encloses. Returns false if out of memory. */
static bool forget_calls(struct own_times *times, struct own_thread **thread, int64_t now_ns)
{
    const size_t number = (size_t)(*thread - times->thread);
    if (!note_long_calls(times, now_ns))
        return false;
    struct own_thread *full = *thread = &times->thread[number]; /* long calls may be of new threads */
    const int64_t from_ns = enclosed_from(full, now_ns);
    size_t forgotten = 0;
    while (forgotten < full->count && full->outer[forgotten].start_ns < from_ns)
        forgotten++;
    full->count -= forgotten;
    memmove(full->outer, full->outer + forgotten, full->count * sizeof(*full->outer));
    if (full->count == OUTER_MOST)
        merge_pairs(full);
    full->full = full->count < OUTER_FEW / 2 ? OUTER_FEW : 2 * full->count;
    full->full = full->full < OUTER_MOST ? full->full : OUTER_MOST;
    return true;
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
    struct own_thread *thread;
    struct own_row *row;
    if (!find_place(times, &call->site, &thread, &row))
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
    if (thread->count >= thread->full && !forget_calls(times, &thread, call->id))
        return false;
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
        row.layer_name = layer_names[row.layer];
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
    struct ct_stream *stream = times->stream = ct_stream_open(connection, &scope);
    if (!stream)
        return SQLITE_ERROR;
    times->has_long = ct_stream_next_long(stream, &times->long_call);
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
    for (size_t i = 0; i < times->threads; i++) {
        free(times->thread[i].outer);
        free(times->thread[i].open);
    }
    for (size_t i = 0; i < times->rows; i++)
        free((char *)(uintptr_t)times->row[i].name);
    free(times->thread);
    free(times->row);
    ct_intern_finish(&times->threads_found);
    ct_intern_finish(&times->rows_found);
}

/* ---- the table ---- */

static void release(void *result)
{
    if (result)
        finish(result);
    free(result);
}

static int compute(sqlite3 *connection, const struct ct_scope *scope, void **result)
{
    struct own_times *times = calloc(1, sizeof(*times));
    *result = times;
    if (!times)
        return SQLITE_NOMEM;
    ct_intern_init(&times->threads_found, 2 * sizeof(int64_t), SIZE_MAX, 1);
    ct_intern_init(&times->rows_found, 3 * sizeof(int64_t), SIZE_MAX, 1);
    return read_calls(times, connection, *scope);
}

#define NUMBER(name_, field_) CT_COMPUTED_COLUMN(name_, NUMBER, own_row, field_)
#define TEXT(name_, field_)   CT_COMPUTED_COLUMN(name_, TEXT, own_row, field_)
static const struct ct_computed_column own_time_columns[] = {
    NUMBER("process_id", process_id),
    TEXT("layer", layer_name),
    TEXT("name", name),
    NUMBER("calls", calls),
    NUMBER("total_ns", total_ns),
    NUMBER("own_ns", own_ns),
    NUMBER("library_ns", inside_ns[OWN_LIBRARY]),
    NUMBER("runtime_ns", inside_ns[OWN_RUNTIME]),
    NUMBER("driver_ns", inside_ns[OWN_DRIVER]),
    NUMBER("ioctl_ns", inside_ns[OWN_IOCTL]),
    NUMBER("kernel_ns", inside_ns[OWN_KERNEL]),
    NUMBER("blocked_ns", inside_ns[OWN_BLOCKED]),
    NUMBER("preempted_ns", inside_ns[OWN_PREEMPTED]),
    { 0 },
};
#undef NUMBER
#undef TEXT

static const struct ct_computation computation = { .view = "calls", .compute = compute, .release = release };
CT_COMPUTED_TABLE(own_time, own_row, own_times, row, rows);

int ct_own_time_add(sqlite3 *connection, struct ct_computed_cache *cache)
{
    return ct_computed_add(connection, &own_time, cache);
}
