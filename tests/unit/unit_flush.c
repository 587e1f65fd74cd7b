/* Tests that if a report presents calls as flushed, they have in fact been flushed. The test covers reports
 * on several batches, users whose calls were held back, and a daemon that has not yet looked for new
 * segments. */
#include "batch.h"
#include "clock.h"
#include "shm_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void expect(const char *what, bool is_so)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    exit(EXIT_FAILURE);
}

/* Returns a report that holds back `users` users, whose ids are consecutive and begin at `uid`. */
static struct ct_report held_of(uint32_t uid, uint32_t users, uint64_t flushed_ns)
{
    struct ct_report report = { .flushed_ns = flushed_ns };
    for (uint32_t i = 0; i < users; i++)
        ct_report_hold(&report, uid + i);
    return report;
}

static void check_held(void)
{
    expect("nobody is", !ct_report_holds(&(struct ct_report){ 0 }, 1, true));
    /* Adding the same users again must not use more entries of the list. */
    struct ct_report report = held_of(1, CT_HELD_MAX, 20), earlier = held_of(1, CT_HELD_MAX, 10);
    ct_report_add(&report, &earlier);
    expect("the later moment counts", report.flushed_ns == 20);
    expect("those who were held are",
           ct_report_holds(&report, 1, false) && ct_report_holds(&report, CT_HELD_MAX, false));
    expect("somebody is", ct_report_holds(&report, CT_HELD_MAX + 1, true));
    expect("nobody else is", !ct_report_holds(&report, CT_HELD_MAX + 1, false));
    /* If more users are held back than the report can list, every user counts as held back. */
    earlier = held_of(100, 1, 30);
    ct_report_add(&report, &earlier);
    expect("what is flushed stays so", report.flushed_ns == 30);
    expect("one who was held before is", ct_report_holds(&report, 100, false));
    report = held_of(1, 1, 10);
    earlier = held_of(1, CT_HELD_MAX + 1, 10);
    ct_report_add(&report, &earlier);
    expect("one of those who had no room is", ct_report_holds(&report, CT_HELD_MAX + 1, false));
}

static struct ct_shm shm;

/* Makes a batch immediately, although there is no process. */
static uint64_t flushed_by(struct ct_collection *collection)
{
    struct ct_report report = { 0 };
    ct_batch_make(collection, &(struct ct_request){ .flush_ns = 1 }, &report);
    expect(report.error, report.error[0] == '\0');
    expect("what was there at the last look was in it", report.looked_ns == shm.looked_ns);
    return report.flushed_ns;
}

static void check_looked(const char *path)
{
    static struct ct_control control = { .clock = CT_CLOCK_MONOTONIC };
    struct ct_collection collection = { .sources = &shm.source };
    char message[CT_MESSAGE_BYTES] = "";
    ct_store_open(path, "test", &collection.ledger.store, message);
    expect(message, collection.ledger.store != NULL);
    ct_shm_init(&shm, "/nowhere", &control);

    uint64_t before_ns = ct_monotonic_ns();
    expect("all segments are known", flushed_by(&collection) >= before_ns);
    before_ns = ct_monotonic_ns();
    ct_shm_adopted(&shm, 0, before_ns);
    atomic_store(&control.segments, 1);
    expect("a segment is counted, and not known", flushed_by(&collection) < before_ns);
    ct_shm_adopted(&shm, 1, before_ns);
    control.system = true;
    expect("a system's session has not looked since", flushed_by(&collection) <= before_ns);
    before_ns = ct_monotonic_ns();
    ct_shm_adopted(&shm, 1, before_ns + 1);
    expect("it has looked", flushed_by(&collection) >= before_ns);
    ct_store_close(collection.ledger.store);
    ct_ledger_finish(&collection.ledger);
}

int main(void)
{
    char folder[] = "/tmp/cudatrace-flush.XXXXXX", path[64];
    check_held();
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    snprintf(path, sizeof(path), "%s/trace.db", folder);
    check_looked(path);
    unlink(path);
    return rmdir(folder) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
