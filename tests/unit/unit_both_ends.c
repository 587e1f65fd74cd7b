/* Runs the hook's code and the collector's code on one segment, in threads of the same process, so that TSan
 * can check them (the `threads` build). Threads start and end, records take two to six slots and wrap around
 * the rings many times, and open calls are read at the same time. In the end, the number of calls must equal
 * stored + lost, and each thread's rows must be the thread's calls in order.
 *
 *   paced  threads wait for the collector when a ring might be full: nothing is lost
 *   full   the collector waits until a ring is full: calls are lost
 *
 * Both ends must use the same mapping, because TSan identifies memory by its address. Therefore, the linker
 * redirects mmap(), which with 64-bit offsets is mmap64(), to this file (--wrap). */
#include "../made_segment.h"
#include "batch.h"
#include "both_ends.h"
#include "shm_segment.h"
#include "shm_source.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 3, GENERATIONS = 4, CALLS = 6000, LANES = 16 };
enum { AHEAD = 500 }; /* calls that always fit into a ring, at six slots each plus the thread's own record */

static uint8_t *whole;
static size_t whole_bytes;

void *__real_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t bytes);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t bytes);

void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return whole && flags & MAP_SHARED ? whole + offset
                                       : __real_mmap64(at, bytes, protection, flags, fd, offset);
}
int __wrap_munmap(void *at, size_t bytes)
{
    const uint8_t *from = at;
    return from >= whole && from < whole + whole_bytes ? 0 : __real_munmap(at, bytes);
}

static void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static struct ct_segment *make_segment(const char *path)
{
    const uint64_t lane_bytes = CT_LANE_HEADER_BYTES + CT_CHUNK_BYTES + 2 * BOTH_ENDS_RING_BYTES;
    whole_bytes = CT_LANE_OFFSET + LANES * lane_bytes;
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, (off_t)whole_bytes) != 0)
        die(path);
    whole = __real_mmap64(NULL, whole_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (whole == MAP_FAILED)
        die("mmap");
    struct ct_segment *segment = (struct ct_segment *)(void *)whole;
    *segment = made_segment(BOTH_ENDS_RING_BYTES);
    segment->lane_slots = LANES;
    segment->anchor.monotonic_ns = ct_monotonic_ns();
    struct ct_function *functions = (struct ct_function *)(void *)(whole + CT_DIRECTORY_OFFSET);
    strcpy(functions[0].name, "(none)");
    strcpy(functions[1].name, "cuOfTheTest");
    segment->functions = 2;
    return segment;
}

static bool paced;
static _Atomic bool done;
static _Atomic uint64_t made, stored;

static void *work(void *number)
{
    for (uint64_t i = 0; i < CALLS; i++) {
        const uint64_t before = atomic_fetch_add(&made, 1);
        while (paced && before >= atomic_load(&stored) + AHEAD)
            sched_yield();
        both_ends_call(i + (uint64_t)(uintptr_t)number);
    }
    return NULL;
}

/* Starts several generations of threads, which reuse each other's lanes. */
static void *produce(void *unused)
{
    for (int generation = 0; generation < GENERATIONS; generation++) {
        pthread_t threads[THREADS];
        for (uintptr_t i = 0; i < THREADS; i++) {
            if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
                die("pthread_create");
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    atomic_store(&done, true);
    return unused;
}

static struct ct_shm shm;

static void collect(struct ct_collection *collection, struct ct_report *report, bool flush)
{
    *report = (struct ct_report){ .rows_total = report->rows_total };
    ct_batch_make(collection,
                  &(struct ct_request){ .snapshot_open = true, .flush_ns = flush ? ct_monotonic_ns() : 0 },
                  report);
    const struct ct_shm_process *gone = ct_shm_take_gone(&shm);
    if (report->error[0] || gone) {
        fprintf(stderr, "%s%s\n", report->error, gone ? gone->broken : "");
        exit(EXIT_FAILURE);
    }
    atomic_store(&stored, report->rows_total);
}

static uint64_t calls_lost(const struct ct_segment *segment)
{
    uint64_t lost = atomic_load(&segment->unlaned[CT_UNLANED_MEMORY].calls);
    const uint32_t lanes = atomic_load(&segment->lanes);
    for (uint32_t i = 0; i < lanes; i++) {
        const struct ct_lane *lane =
            (const struct ct_lane *)(const void *)(whole + ct_segment_lane_offset(segment, i));
        for (int cause = 0; cause < CT_LANE_LOSS_COUNT; cause++)
            lost += atomic_load(&lane->loss[cause].calls);
    }
    return lost;
}

/* Checks that each thread's rows, in order of return, are the thread's calls in the order that they were
 * made. Returns the number of rows. */
static uint64_t check_rows(const char *path)
{
    static const char query[] = "SELECT thread_id, call.bytes, source, destination, status FROM call "
                                "JOIN site USING (site_id) LEFT JOIN transfer ON call_id = end_ns "
                                "ORDER BY thread_id, end_ns";
    sqlite3 *connection;
    sqlite3_stmt *statement = NULL;
    if (sqlite3_open(path, &connection) != SQLITE_OK ||
        sqlite3_prepare_v2(connection, query, -1, &statement, NULL) != SQLITE_OK)
        die("sqlite");
    int64_t thread = 0, last = -1;
    uint64_t rows = 0;
    int rc;
    for (; (rc = sqlite3_step(statement)) == SQLITE_ROW; rows++) {
        const int64_t bytes = sqlite3_column_int64(statement, 1);
        const bool is_copy = sqlite3_column_type(statement, 2) != SQLITE_NULL;
        if (sqlite3_column_int64(statement, 0) != thread)
            last = -1;
        thread = sqlite3_column_int64(statement, 0);
        if (sqlite3_column_type(statement, 1) == SQLITE_NULL || bytes <= last || bytes >= CALLS + THREADS ||
            is_copy != (bytes % 3 != 0) || sqlite3_column_int64(statement, 4) != 0 ||
            (is_copy && (sqlite3_column_int64(statement, 2) != bytes + BOTH_ENDS_SOURCE ||
                         sqlite3_column_int64(statement, 3) != bytes + BOTH_ENDS_DESTINATION))) {
            fprintf(stderr, "thread %lld: %lld behind %lld, from %lld to %lld\n", (long long)thread,
                    (long long)bytes, (long long)last, (long long)sqlite3_column_int64(statement, 2),
                    (long long)sqlite3_column_int64(statement, 3));
            exit(EXIT_FAILURE);
        }
        last = bytes;
    }
    if (rc != SQLITE_DONE)
        die("sqlite");
    sqlite3_finalize(statement);
    sqlite3_close(connection);
    return rows;
}

int main(int argc, char **argv)
{
    paced = argc == 2 && strcmp(argv[1], "paced") == 0;
    if (!paced && (argc != 2 || strcmp(argv[1], "full") != 0)) {
        fprintf(stderr, "usage: both_ends paced | full\n");
        return 2;
    }
    char folder[] = "/tmp/both-ends.XXXXXX", path[64], name[64], message[CT_MESSAGE_BYTES];
    if (!mkdtemp(folder))
        die("mkdtemp");
    snprintf(path, sizeof(path), "%s/trace.db", folder);
    snprintf(name, sizeof(name), CT_SHM_DIR "/cudatrace-both-ends.%d", getpid());
    static struct ct_control control = { .clock = CT_CLOCK_MONOTONIC };
    struct ct_collection collection = { .sources = &shm.source };
    struct ct_shm_process *process = NULL;
    ct_shm_init(&shm, "/nowhere", &control);
    struct ct_segment *segment = make_segment(name);
    const char *reason;
    if (ct_store_open(path, "test", &collection.ledger.store, message) != 0 ||
        ct_shm_open(name, NULL, &process, &reason) != 0 || !both_ends_begin(segment, &control))
        die("open");
    ct_shm_adopt(&shm, process);

    pthread_t producers;
    if (pthread_create(&producers, NULL, produce, NULL) != 0)
        die("pthread_create");
    struct ct_report report = { 0 };
    while (!paced && calls_lost(segment) == 0)
        sched_yield();
    while (!atomic_load(&done))
        collect(&collection, &report, false);
    pthread_join(producers, NULL);
    do
        collect(&collection, &report, true);
    while (report.backlog);

    const uint64_t lost = calls_lost(segment);
    const uint64_t calls = (uint64_t)THREADS * GENERATIONS * CALLS;
    printf("%llu calls, %llu stored, %llu lost, %u lanes, %llu late\n", (unsigned long long)calls,
           (unsigned long long)report.rows_total, (unsigned long long)lost, atomic_load(&segment->lanes),
           (unsigned long long)report.late_total);
    ct_shm_close(ct_shm_finish(&shm), true);
    ct_store_close(collection.ledger.store);
    ct_ledger_finish(&collection.ledger);
    const uint64_t rows = check_rows(path);
    unlink(path);
    rmdir(folder);
    return rows + lost == calls && rows == report.rows_total && (lost > 0) == !paced ? EXIT_SUCCESS
                                                                                     : EXIT_FAILURE;
}
