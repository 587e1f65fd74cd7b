#include "gpu_queue.h"

#include "computed_table.h"
#include "intern.h"
#include "room.h"

#include <stdlib.h>

enum { QUARTERS = 4 };

struct row {
    int64_t process_id, device, context, stream;
    int64_t launched, latency_ns, longest_ns, depth, deepest, empty;
    int64_t launched_in[QUARTERS], depth_in[QUARTERS];
};

/* The starts of a stream's work that has been launched. The earliest is the first, and none is earlier than
 * the one at half its place. Almost always, they are sorted. */
struct waiting {
    int64_t *start_ns; /* places from 1 */
    size_t count, room;
};

struct queue {
    struct ct_intern streams; /* numbers from 1 */
    struct row *row;
    struct waiting *waiting;
    size_t rows, row_room, waiting_room;
    int64_t first_ns, last_ns; /* of the launches that are asked for */
};

static void swap(struct waiting *waiting, size_t a, size_t b)
{
    const int64_t start_ns = waiting->start_ns[a];
    waiting->start_ns[a] = waiting->start_ns[b];
    waiting->start_ns[b] = start_ns;
}

static bool push(struct waiting *waiting, int64_t start_ns)
{
    if (!ct_make_room_for(&waiting->start_ns, waiting->count, 2, &waiting->room, sizeof(*waiting->start_ns)))
        return false;
    size_t at = ++waiting->count;
    waiting->start_ns[at] = start_ns;
    for (; at > 1 && waiting->start_ns[at] < waiting->start_ns[at / 2]; at /= 2)
        swap(waiting, at, at / 2);
    return true;
}

static void pop(struct waiting *waiting)
{
    waiting->start_ns[1] = waiting->start_ns[waiting->count--];
    for (size_t at = 1, least; 2 * at <= waiting->count; at = least) {
        least = 2 * at;
        if (least < waiting->count && waiting->start_ns[least + 1] < waiting->start_ns[least])
            least++;
        if (waiting->start_ns[at] <= waiting->start_ns[least])
            break;
        swap(waiting, at, least);
    }
}

static struct row *row_of(struct queue *queue, const int64_t stream[4], struct waiting **waiting)
{
    bool is_new;
    const int64_t number = ct_intern_get(&queue->streams, stream, &is_new);
    if (number == 0 ||
        (is_new &&
         (!ct_make_room(&queue->row, queue->rows, &queue->row_room, sizeof(*queue->row)) ||
          !ct_make_room(&queue->waiting, queue->rows, &queue->waiting_room, sizeof(*queue->waiting)))))
        return NULL;
    if (is_new) {
        queue->waiting[queue->rows] = (struct waiting){ 0 };
        queue->row[queue->rows++] = (struct row){ stream[0], stream[1], stream[2], stream[3] };
    }
    *waiting = &queue->waiting[number - 1];
    return &queue->row[number - 1];
}

/* Adds a launch, which comes after all launches added before. */
static int add(struct queue *queue, const int64_t stream[4], int64_t at_ns, int64_t start_ns)
{
    struct waiting *waiting;
    struct row *row = row_of(queue, stream, &waiting);
    if (!row || !push(waiting, start_ns))
        return SQLITE_NOMEM;
    while (waiting->start_ns[1] < at_ns)
        pop(waiting);
    if (at_ns < queue->first_ns || at_ns > queue->last_ns)
        return SQLITE_OK;
    const int64_t depth = (int64_t)waiting->count, latency_ns = start_ns - at_ns;
    const int64_t quarter = QUARTERS * (at_ns - queue->first_ns) / (queue->last_ns - queue->first_ns + 1);
    row->launched++;
    row->latency_ns += latency_ns;
    row->longest_ns = latency_ns > row->longest_ns ? latency_ns : row->longest_ns;
    row->depth += depth;
    row->deepest = depth > row->deepest ? depth : row->deepest;
    row->empty += depth == 1;
    row->launched_in[quarter]++;
    row->depth_in[quarter] += depth;
    return SQLITE_OK;
}

/* ---- reading the work ---- */

static sqlite3_stmt *prepare(sqlite3 *connection, const char *sql, const struct ct_scope *scope)
{
    sqlite3_stmt *query = NULL;
    sqlite3_prepare_v2(connection, sql, -1, &query, NULL);
    sqlite3_bind_int64(query, 1, scope->pid);
    if (sqlite3_bind_parameter_count(query) > 1) {
        sqlite3_bind_int64(query, 2, scope->from_ns);
        sqlite3_bind_int64(query, 3, scope->to_ns);
    }
    return query;
}

#define OF_PROCESS                                                                                           \
    "FROM gpu_work WHERE call_id IS NOT NULL AND (?1 = 0 OR process_id IN (SELECT process_id FROM "          \
    "processes "                                                                                             \
    "WHERE pid = ?1))"

/* Finds the first and the last launch that are asked for. */
static int find_bounds(struct queue *queue, sqlite3 *connection, const struct ct_scope *scope)
{
    sqlite3_stmt *query =
        prepare(connection,
                "SELECT min(at_ns), max(at_ns) FROM (SELECT min(call_id, gpu_start_ns) AS at_ns " OF_PROCESS
                ") WHERE at_ns BETWEEN ?2 AND ?3",
                scope);
    int rc = query ? sqlite3_step(query) : SQLITE_ERROR;
    if (rc == SQLITE_ROW && sqlite3_column_type(query, 0) != SQLITE_NULL) {
        queue->first_ns = sqlite3_column_int64(query, 0);
        queue->last_ns = sqlite3_column_int64(query, 1);
    }
    sqlite3_finalize(query);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int read_launches(struct queue *queue, sqlite3 *connection, const struct ct_scope *scope)
{
    sqlite3_stmt *query =
        prepare(connection,
                "SELECT process_id, device, context, stream, min(call_id, gpu_start_ns) AS at_ns, "
                "gpu_start_ns " OF_PROCESS " ORDER BY at_ns",
                scope);
    int rc = query ? SQLITE_OK : SQLITE_ERROR;
    while (rc == SQLITE_OK && (rc = sqlite3_step(query)) == SQLITE_ROW) {
        int64_t stream[4];
        for (int i = 0; i < 4; i++)
            stream[i] = sqlite3_column_int64(query, i);
        rc = add(queue, stream, sqlite3_column_int64(query, 4), sqlite3_column_int64(query, 5));
    }
    sqlite3_finalize(query);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void release(void *result)
{
    struct queue *queue = result;
    if (!queue)
        return;
    free(queue->row);
    ct_intern_finish(&queue->streams);
    free(queue);
}

/* Removes rows without launches in the window. Their starts are no longer needed. */
static void keep_rows(struct queue *queue)
{
    size_t kept = 0;
    for (size_t i = 0; i < queue->rows; i++) {
        free(queue->waiting[i].start_ns);
        if (queue->row[i].launched > 0)
            queue->row[kept++] = queue->row[i];
    }
    free(queue->waiting);
    queue->waiting = NULL;
    queue->rows = kept;
}

static int compute(sqlite3 *connection, const struct ct_scope *scope, void **result)
{
    struct queue *queue = calloc(1, sizeof(*queue));
    *result = queue;
    if (!queue)
        return SQLITE_NOMEM;
    queue->first_ns = INT64_MAX;
    ct_intern_init(&queue->streams, 4 * sizeof(int64_t), SIZE_MAX, 1);
    int rc = find_bounds(queue, connection, scope);
    if (rc == SQLITE_OK && queue->first_ns <= queue->last_ns)
        rc = read_launches(queue, connection, scope);
    keep_rows(queue);
    return rc;
}

#define NUMBER(name_, field_)                                                                                \
    {                                                                                                        \
        .name = name_, .type = CT_COMPUTED_NUMBER, .offset = offsetof(struct row, field_)                    \
    }
static const struct ct_computed_column columns[] = {
    NUMBER("process_id", process_id),
    NUMBER("device", device),
    NUMBER("context", context),
    NUMBER("stream", stream),
    NUMBER("launched", launched),
    NUMBER("latency_ns", latency_ns),
    NUMBER("longest_ns", longest_ns),
    NUMBER("depth", depth),
    NUMBER("deepest", deepest),
    NUMBER("empty", empty),
    NUMBER("launched_q1", launched_in[0]),
    NUMBER("launched_q2", launched_in[1]),
    NUMBER("launched_q3", launched_in[2]),
    NUMBER("launched_q4", launched_in[3]),
    NUMBER("depth_q1", depth_in[0]),
    NUMBER("depth_q2", depth_in[1]),
    NUMBER("depth_q3", depth_in[2]),
    NUMBER("depth_q4", depth_in[3]),
    { 0 },
};
#undef NUMBER

int ct_gpu_queue_add(sqlite3 *connection, struct ct_computed_cache *cache)
{
    static const struct ct_computation computation = { .view = "launch_queue",
                                                       .compute = compute,
                                                       .release = release };
    static const struct ct_computed_table gpu_queue_sums = { .name = "gpu_queue_sums",
                                                             .computation = &computation,
                                                             .columns = columns,
                                                             .row_bytes = sizeof(struct row),
                                                             .rows_at = offsetof(struct queue, row),
                                                             .count_at = offsetof(struct queue, rows) };
    return ct_computed_add(connection, &gpu_queue_sums, cache);
}
