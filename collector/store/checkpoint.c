#include "checkpoint.h"

#include "background_task.h"
#include "clock.h"
#include "test_point.h"

#include <sqlite3.h>
#include <stdlib.h>

#define INTERVAL_NS UINT64_C(1000000000)

struct ct_checkpointer {
    struct ct_store *store;
    sqlite3 *connection; /* used by the thread */
    uint32_t pages;      /* copy the log when it has this many pages */
    uint32_t pages_max;  /* at this size, copy the log even soon after the last copy */
    uint32_t grown_from; /* pages that the last copy left because of a reader; used by the worker */
    uint64_t copied_ns;  /* when the last copy began; used by the worker */
    bool is_copying;     /* the thread was started, and the worker has not seen its end */
    struct ct_task *task;
};

/* Copies the log until little is left for the worker to copy, because no ring is read while the worker
 * copies. After an error, such as a full disk, the log is unchanged, and the worker retries the copy and
 * reports the error. */
static int copy_bulk(void *data)
{
    enum { PASSES = 4, LITTLE = 256 };
    const struct ct_checkpointer *checkpointer = data;
    int pages = 0, copied = 0, before = -1;
    CT_TEST_POINT("checkpoint.bulk");
    for (int pass = 0; pass < PASSES && copied != before; pass++) {
        before = copied;
        if (sqlite3_wal_checkpoint_v2(checkpointer->connection, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages,
                                      &copied) != SQLITE_OK ||
            pages - copied < LITTLE)
            break;
    }
    CT_TEST_POINT("checkpoint.bulk_done");
    return 0;
}

struct ct_checkpointer *ct_checkpointer_create(struct ct_store *store, uint32_t pages)
{
    struct ct_checkpointer *checkpointer = calloc(1, sizeof(*checkpointer));
    if (!checkpointer)
        return NULL;
    checkpointer->store = store;
    checkpointer->pages = pages;
    checkpointer->pages_max = pages == CT_CHECKPOINT_PAGES ? CT_CHECKPOINT_PAGES_MAX : pages;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(ct_store_path(store), &checkpointer->connection, flags, NULL) == SQLITE_OK &&
        sqlite3_exec(checkpointer->connection, "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0",
                     NULL, NULL, NULL) == SQLITE_OK &&
        (checkpointer->task = ct_task_create("ct-checkpoint", copy_bulk, checkpointer)) != NULL) {
        ct_store_leave_checkpoints(store);
        return checkpointer;
    }
    sqlite3_close(checkpointer->connection);
    free(checkpointer);
    return NULL;
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
    if (!checkpointer->is_copying && is_due(checkpointer, pages)) {
        checkpointer->copied_ns = ct_monotonic_ns();
        checkpointer->is_copying = true;
        ct_store_check_written(checkpointer->store);
        ct_task_start(checkpointer->task);
    } else if (checkpointer->is_copying && ct_task_is_done(checkpointer->task)) {
        /* Copy the remaining pages, so that the next commit restarts the log. If a reader holds the log,
         * retry once it has grown by another `pages` pages. */
        CT_TEST_POINT("checkpoint.rest");
        const bool all = ct_store_checkpoint(checkpointer->store);
        checkpointer->grown_from = all ? 0 : pages;
        CT_TEST_POINT("checkpoint.rest_done");
        checkpointer->is_copying = false;
    }
}

void ct_checkpointer_destroy(struct ct_checkpointer *checkpointer)
{
    if (!checkpointer)
        return;
    ct_task_destroy(checkpointer->task);
    if (!checkpointer->is_copying)
        ct_store_check_written(checkpointer->store);
    sqlite3_close(checkpointer->connection);
    free(checkpointer);
}
