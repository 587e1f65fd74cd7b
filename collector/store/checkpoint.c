#include "checkpoint.h"

#include "clock.h"
#include "test_point.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <uv.h>

/* Says what is to be done with the log. */
enum stage {
    GROWING, /* nothing until it has so many pages */
    BULK,    /* the thread copies what was committed so far */
    REST,    /* the worker copies what came meanwhile */
};

#define INTERVAL_NS UINT64_C(1000000000)

struct ct_checkpointer {
    struct ct_store *store;
    sqlite3 *connection; /* the thread's */
    uint32_t pages;      /* pages of the log at which it is copied, */
    uint32_t pages_max;  /* and at which it is however short ago the last time was */
    uint32_t grown_from; /* pages that the last copy left, since a reader holds them; the worker's */
    uint64_t copied_ns;  /* when the last copy began; the worker's */
    uv_thread_t thread;
    uv_mutex_t mutex;
    uv_cond_t cond;
    enum stage stage; /* under the mutex */
    bool stop;        /* the same */
};

/* Copies until there is little left to the worker, who is waited for by all rings. */
static void copy_bulk(sqlite3 *connection)
{
    enum { PASSES = 4, LITTLE = 256 };
    int pages = 0, copied = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        const int before = copied;
        if (sqlite3_wal_checkpoint_v2(connection, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied) !=
                SQLITE_OK ||
            pages - copied < LITTLE || copied == before)
            return;
    }
}

/* An error (a full disk, say) leaves the log as it is: the worker, who tries again, notes it. */
static void thread_main(void *data)
{
    struct ct_checkpointer *checkpointer = data;
    uv_mutex_lock(&checkpointer->mutex);
    for (;;) {
        while (checkpointer->stage != BULK && !checkpointer->stop)
            uv_cond_wait(&checkpointer->cond, &checkpointer->mutex);
        if (checkpointer->stop)
            break;
        uv_mutex_unlock(&checkpointer->mutex);
        CT_TEST_POINT("checkpoint.bulk");
        copy_bulk(checkpointer->connection);
        CT_TEST_POINT("checkpoint.bulk_done");
        uv_mutex_lock(&checkpointer->mutex);
        checkpointer->stage = REST;
    }
    uv_mutex_unlock(&checkpointer->mutex);
}

struct ct_checkpointer *ct_checkpointer_create(struct ct_store *store, uint32_t pages)
{
    struct ct_checkpointer *checkpointer = calloc(1, sizeof(*checkpointer));
    if (!checkpointer)
        return NULL;
    checkpointer->store = store;
    checkpointer->pages = pages;
    checkpointer->pages_max = pages == CT_CHECKPOINT_PAGES ? CT_CHECKPOINT_PAGES_MAX : pages;
    uv_mutex_init(&checkpointer->mutex);
    uv_cond_init(&checkpointer->cond);
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(ct_store_path(store), &checkpointer->connection, flags, NULL) == SQLITE_OK &&
        sqlite3_exec(checkpointer->connection, "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0",
                     NULL, NULL, NULL) == SQLITE_OK &&
        uv_thread_create(&checkpointer->thread, thread_main, checkpointer) == 0) {
        ct_store_leave_checkpoints(store);
        return checkpointer;
    }
    sqlite3_close(checkpointer->connection);
    uv_cond_destroy(&checkpointer->cond);
    uv_mutex_destroy(&checkpointer->mutex);
    free(checkpointer);
    return NULL;
}

static enum stage stage_of(struct ct_checkpointer *checkpointer)
{
    uv_mutex_lock(&checkpointer->mutex);
    const enum stage stage = checkpointer->stage;
    uv_mutex_unlock(&checkpointer->mutex);
    return stage;
}

static void set_stage(struct ct_checkpointer *checkpointer, enum stage stage)
{
    uv_mutex_lock(&checkpointer->mutex);
    checkpointer->stage = stage;
    uv_cond_signal(&checkpointer->cond);
    uv_mutex_unlock(&checkpointer->mutex);
}

static bool is_due(const struct ct_checkpointer *checkpointer, uint32_t pages)
{
    const uint32_t grown = pages < checkpointer->grown_from ? pages : pages - checkpointer->grown_from;
    return grown >= checkpointer->pages_max ||
           (grown >= checkpointer->pages && ct_monotonic_ns() - checkpointer->copied_ns >= INTERVAL_NS);
}

void ct_checkpointer_tend(struct ct_checkpointer *checkpointer)
{
    if (!checkpointer)
        return;
    const uint32_t pages = ct_store_log_pages(checkpointer->store);
    const enum stage stage = stage_of(checkpointer);
    if (stage == GROWING && is_due(checkpointer, pages)) {
        checkpointer->copied_ns = ct_monotonic_ns();
        set_stage(checkpointer, BULK);
    } else if (stage == REST) {
        /* All of it, and the next commit begins the log anew. Where a reader holds it, it grows: as much
         * again until the next attempt. */
        CT_TEST_POINT("checkpoint.rest");
        const bool all = ct_store_checkpoint(checkpointer->store);
        checkpointer->grown_from = all ? 0 : pages;
        CT_TEST_POINT("checkpoint.rest_done");
        set_stage(checkpointer, GROWING);
    }
}

void ct_checkpointer_destroy(struct ct_checkpointer *checkpointer)
{
    if (!checkpointer)
        return;
    uv_mutex_lock(&checkpointer->mutex);
    checkpointer->stop = true;
    uv_cond_signal(&checkpointer->cond);
    uv_mutex_unlock(&checkpointer->mutex);
    uv_thread_join(&checkpointer->thread);
    sqlite3_close(checkpointer->connection);
    uv_cond_destroy(&checkpointer->cond);
    uv_mutex_destroy(&checkpointer->mutex);
    free(checkpointer);
}
