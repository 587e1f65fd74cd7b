/* Makes a database with a given number of calls. The collector's own code reads the segments of four
 * processes at a time, as if four training loops kept exiting and restarting. Prints the elapsed seconds and
 * the number of rows. */
#include "batch.h"
#include "shm_segment.h"
#include "shm_source.h"
#include "stored_calls.h"
#include "training.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROCESSES = 4, LANES = 4, LANE_CALLS_MAX = 120000, CALLS_PER_S = 100000 };

static void stop_with(const char *what)
{
    fprintf(stderr, "make_database: %s\n", what);
    exit(EXIT_FAILURE);
}

static struct ct_shm shm;

static uint64_t drain(struct ct_collection *collection, int processes)
{
    struct ct_report report = { 0 };
    uint64_t rows = 0;
    while (processes > 0) {
        ct_batch_make(collection, &(struct ct_request){ 0 }, &report);
        if (report.error[0])
            stop_with(report.error);
        for (struct ct_shm_process *p = ct_shm_take_gone(&shm), *next; p; p = next) {
            processes--;
            next = p->next;
            if (p->broken)
                stop_with(p->broken);
            ct_shm_close(p, true);
        }
        rows += report.rows;
        report = (struct ct_report){ 0 };
    }
    return rows;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("Usage: make_database MIX.tsv DATABASE CALLS\n", stderr);
        return 2;
    }
    const uint64_t calls = strtoull(argv[3], NULL, 10);
    char message[CT_MESSAGE_BYTES];
    static struct ct_control control;
    control = (struct ct_control){ .clock = CT_CLOCK_MONOTONIC };
    struct ct_collection collection = { .sources = &shm.source };
    ct_shm_init(&shm, "/nowhere", &control);
    training_read(argv[1]);
    ct_guard_install();
    if (ct_store_open(argv[2], "bench", &collection.ledger.store, message) != 0)
        stop_with(message);

    /* Spread the calls over time at a rate of CALLS_PER_S, if the machine has been up for long enough. */
    const uint64_t now_ns = ct_monotonic_ns();
    uint64_t span_ns = calls * 1000000000 / CALLS_PER_S;
    if (span_ns > now_ns / 2)
        span_ns = now_ns / 2;
    uint64_t first_ns = now_ns - span_ns - span_ns / 10 - 1000000000;
    uint64_t rows = 0, segments = 0;
    while (rows < calls) {
        const uint64_t left = calls - rows;
        const uint64_t group = left < (uint64_t)PROCESSES * LANES * LANE_CALLS_MAX
                                   ? left
                                   : (uint64_t)PROCESSES * LANES * LANE_CALLS_MAX;
        struct training_segment wanted = {
            .first_ns = first_ns,
            .gap_ns = span_ns / calls * PROCESSES * LANES,
            .lanes = LANES,
            .calls_per_lane = (uint32_t)((group + (uint64_t)PROCESSES * LANES - 1) / (PROCESSES * LANES)),
        };
        for (int i = 0; i < PROCESSES; i++) {
            char path[64];
            struct ct_shm_process *process;
            const char *reason;
            snprintf(path, sizeof(path), CT_SHM_DIR "/cudatrace-bench.%d.%" PRIu64, getpid(), segments++);
            const uint64_t last_ns = training_write(path, &wanted);
            if (ct_shm_open(path, NULL, &process, &reason) != 0)
                stop_with(reason);
            atomic_store(&process->who.dead, true); /* makes the collector read the segment to its end, and
                                                     * then end the process */
            ct_shm_adopt(&shm, process);
            first_ns = last_ns >= first_ns ? last_ns + 1 : first_ns;
        }
        rows += drain(&collection, PROCESSES);
    }
    const uint64_t late = ct_store_late_rows(collection.ledger.store);
    ct_store_close(collection.ledger.store);
    ct_ledger_finish(&collection.ledger);
    printf("%.3f %" PRIu64 " %" PRIu64 "\n", (double)(ct_monotonic_ns() - now_ns) / 1e9, rows, late);
    return EXIT_SUCCESS;
}
