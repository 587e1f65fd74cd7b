#include "gpu_sums.h"

#include "computed_table.h"
#include "gpu_sweep.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

/* The sums of one scope. */
struct ct_gpu_sums_cache {
    pthread_mutex_t lock;
    bool is_filled;
    int64_t from_ns, to_ns, pid;
    struct ct_gpu_sums sums;
};

struct ct_gpu_sums_cache *ct_gpu_sums_cache_new(void)
{
    struct ct_gpu_sums_cache *cache = calloc(1, sizeof(*cache));
    if (cache)
        pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void ct_gpu_sums_cache_free(struct ct_gpu_sums_cache *cache)
{
    if (!cache)
        return;
    ct_gpu_sums_finish(&cache->sums);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static void release(void *owner)
{
    ct_gpu_sums_finish(owner);
    free(owner);
}

/* Returns the cached sums if they are of this scope, or computes them while other threads wait. Sums of
 * another scope than the first are not cached. */
static const struct ct_gpu_sums *cached(sqlite3 *connection, const struct ct_scope *scope,
                                        struct ct_gpu_sums_cache *cache, int *error)
{
    const struct ct_gpu_sums *found = NULL;
    pthread_mutex_lock(&cache->lock);
    if (!cache->is_filled) {
        *error = ct_gpu_sweep(connection, scope, &cache->sums);
        cache->is_filled = *error == SQLITE_OK;
        cache->from_ns = scope->from_ns;
        cache->to_ns = scope->to_ns;
        cache->pid = scope->pid;
    }
    if (cache->is_filled && cache->from_ns == scope->from_ns && cache->to_ns == scope->to_ns &&
        cache->pid == scope->pid)
        found = &cache->sums;
    else if (!cache->is_filled)
        ct_gpu_sums_finish(&cache->sums);
    pthread_mutex_unlock(&cache->lock);
    return found;
}

/* Sets *sums, and the owner of the rows if they are not cached. Returns an SQLite code. */
static int sums_of(sqlite3 *connection, const struct ct_scope *scope, struct ct_gpu_sums_cache *cache,
                   struct ct_computed_rows *rows, const struct ct_gpu_sums **sums)
{
    int error = SQLITE_OK;
    *sums = cache ? cached(connection, scope, cache, &error) : NULL;
    if (*sums || error != SQLITE_OK)
        return error;
    struct ct_gpu_sums *own = calloc(1, sizeof(*own));
    *sums = rows->owner = own;
    return own ? ct_gpu_sweep(connection, scope, own) : SQLITE_NOMEM;
}

#define COLUMN(name_, type_, struct_, field_)                                                                \
    {                                                                                                        \
        .name = name_, .type = CT_COMPUTED_##type_, .offset = offsetof(struct struct_, field_)               \
    }
/* Defines the table NAME, whose rows are in the given arrays of the sums. */
#define TABLE(name_, struct_, rows_, count_)                                                                 \
    static int compute_##name_(sqlite3 *connection, const struct ct_scope *scope, void *client,              \
                               struct ct_computed_rows *rows)                                                \
    {                                                                                                        \
        const struct ct_gpu_sums *sums = NULL;                                                               \
        const int error = sums_of(connection, scope, client, rows, &sums);                                   \
        if (error == SQLITE_OK) {                                                                            \
            rows->row = sums->rows_;                                                                         \
            rows->count = sums->count_;                                                                      \
        }                                                                                                    \
        return error;                                                                                        \
    }                                                                                                        \
    static const struct ct_computed_table name_ = { .name = #name_,                                          \
                                                    .view = "gpu_work",                                      \
                                                    .columns = name_##_columns,                              \
                                                    .row_bytes = sizeof(struct struct_),                     \
                                                    .compute = compute_##name_,                              \
                                                    .release = release }

#define BUSY(field_) COLUMN(#field_, NUMBER, ct_gpu_busy, field_)
static const struct ct_computed_column gpu_busy_sums_columns[] = {
    BUSY(device),  BUSY(from_ns),  BUSY(to_ns),        BUSY(busy_ns),  BUSY(kernel_ns), BUSY(copy_ns),
    BUSY(both_ns), BUSY(graph_ns), BUSY(computing_ns), BUSY(first_ns), BUSY(last_ns),   BUSY(early_ns),
    BUSY(late_ns), BUSY(kernels),  BUSY(copies),       BUSY(sets),     BUSY(graphs),    { 0 },
};
#define IDLE(name_, type_, field_) COLUMN(name_, type_, ct_gpu_idle, field_)
static const struct ct_computed_column gpu_idle_sums_columns[] = {
    IDLE("device", NUMBER, device),
    IDLE("host_state", TEXT, state),
    IDLE("host_call", TEXT, call),
    IDLE("gaps", NUMBER, gaps),
    IDLE("idle_ns", REAL, idle_ns),
    IDLE("period_ns", REAL, period_ns),
    IDLE("longest_ns", NUMBER, longest_ns),
    IDLE("from_ns", NUMBER, from_ns),
    IDLE("ended", TEXT, ended),
    IDLE("begun", TEXT, begun),
    { 0 },
};
#define SHARE(type_, field_) COLUMN(#field_, type_, ct_gpu_share, field_)
static const struct ct_computed_column gpu_share_sums_columns[] = {
    SHARE(NUMBER, device),  SHARE(NUMBER, process_id), SHARE(NUMBER, busy_ns), SHARE(REAL, alone_ns),
    SHARE(NUMBER, periods), SHARE(NUMBER, from_ns),    SHARE(NUMBER, to_ns),   { 0 },
};
#define RECORDING(field_) COLUMN(#field_, NUMBER, ct_gpu_recording, field_)
static const struct ct_computed_column gpu_recording_times_columns[] = {
    RECORDING(process_id), RECORDING(device),         RECORDING(recording),          RECORDING(from_ns),
    RECORDING(to_ns),      RECORDING(previous_to_ns), RECORDING(unrecorded_from_ns), { 0 },
};

TABLE(gpu_busy_sums, ct_gpu_busy, busy, busies);
TABLE(gpu_idle_sums, ct_gpu_idle, idle, idles);
TABLE(gpu_share_sums, ct_gpu_share, share, shares);
TABLE(gpu_recording_times, ct_gpu_recording, recording, recordings);

int ct_gpu_sums_add(sqlite3 *connection, struct ct_gpu_sums_cache *cache)
{
    static const struct ct_computed_table *const tables[] = { &gpu_busy_sums, &gpu_idle_sums, &gpu_share_sums,
                                                              &gpu_recording_times };
    int error = SQLITE_OK;
    for (size_t i = 0; error == SQLITE_OK && i < sizeof(tables) / sizeof(tables[0]); i++)
        error = ct_computed_add(connection, tables[i], cache);
    return error;
}
