#include "gpu_queue.h"

#include "computed_table.h"
#include "gpu_runs.h"
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
    size_t *row_of_task;       /* by ct_gpu_task.number: place of the row, plus 1; 0: not known yet */
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

/* Returns the place of a task's stream, plus 1, after adding it if necessary, or 0 if out of memory. */
static size_t place_of(struct queue *queue, const struct ct_gpu_task *task)
{
    const int64_t stream[] = { task->process_id, task->device, task->context, task->stream };
    bool is_new;
    const int64_t number = ct_intern_get(&queue->streams, stream, &is_new);
    if (number == 0 ||
        (is_new &&
         (!ct_make_room(&queue->row, queue->rows, &queue->row_room, sizeof(*queue->row)) ||
          !ct_make_room(&queue->waiting, queue->rows, &queue->waiting_room, sizeof(*queue->waiting)))))
        return 0;
    if (is_new) {
        queue->waiting[queue->rows] = (struct waiting){ 0 };
        queue->row[queue->rows++] = (struct row){ stream[0], stream[1], stream[2], stream[3] };
    }
    return (size_t)number;
}

/* Adds a launch, which comes after all launches added before. */
static int add(struct queue *queue, const struct ct_gpu_task *task, int64_t at_ns, int64_t start_ns)
{
    size_t *place = &queue->row_of_task[task->number];
    if (*place == 0 && (*place = place_of(queue, task)) == 0)
        return SQLITE_NOMEM;
    struct waiting *waiting = &queue->waiting[*place - 1];
    struct row *row = &queue->row[*place - 1];
    if (!push(waiting, start_ns))
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

static int read_launches(struct queue *queue, sqlite3 *connection, const struct ct_scope *scope)
{
    struct ct_gpu_runs *runs = ct_gpu_runs_open(connection, CT_GPU_BY_LAUNCH, scope);
    if (!runs)
        return SQLITE_NOMEM;
    int rc = SQLITE_OK;
    queue->row_of_task = calloc(ct_gpu_runs_tasks(runs) + 1, sizeof(*queue->row_of_task));
    if (!queue->row_of_task)
        rc = SQLITE_NOMEM;
    struct ct_gpu_run run;
    if (ct_gpu_runs_bounds(runs, &queue->first_ns, &queue->last_ns))
        while (rc == SQLITE_OK && ct_gpu_runs_next(runs, &run))
            rc = add(queue, run.task, run.launched_ns, run.start_ns);
    if (rc == SQLITE_OK)
        rc = ct_gpu_runs_error(runs);
    free(queue->row_of_task);
    ct_gpu_runs_close(runs);
    return rc;
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
    ct_intern_init(&queue->streams, 4 * sizeof(int64_t), SIZE_MAX, 1);
    const int rc = read_launches(queue, connection, scope);
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
    const int rc = ct_gpu_runs_add_function(connection);
    return rc == SQLITE_OK ? ct_computed_add(connection, &gpu_queue_sums, cache) : rc;
}
