/* Tests how long a lane may hold back the rows of all lanes: for as long as the lane might still publish a
 * record. Repeatedly announcing records must not prolong the delay. */
#include "shm_lane.h"

#include <stdio.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)

static struct ct_lane shared;
static struct ct_shm shm;
static struct ct_shm_process process = { .shm = &shm };
static struct ct_lane_source source = {
    .process = &process,
    .shared = &shared,
    .rings = { .process = &process, .shared = &shared, .count = 2, .most = 2048 },
};

/* Checks the watermark of a batch that is made at `at_ms` and finds the lane in the given state. */
static void expect(uint64_t at_ms, uint64_t position, bool announcing, uint64_t until_ms)
{
    struct ct_batch batch = { .now_ns = at_ms * MS, .until_ns = at_ms * MS };
    shm.silent_ns = at_ms * MS;
    shared.state = position << 1 | announcing;
    ct_lane_source_watermark(&source, &batch);
    if (batch.until_ns != until_ms * MS || process.broken) {
        fprintf(stderr, "at %llu ms the watermark is %llu and should be %llu; %s\n",
                (unsigned long long)at_ms, (unsigned long long)(batch.until_ns / MS),
                (unsigned long long)until_ms, process.broken ? process.broken : "");
        exit(EXIT_FAILURE);
    }
}

int main(void)
{
    expect(1000, 1, false, 1000);
    /* A record is announced. The record's call returned after the lane was last seen silent. */
    expect(1010, 1, true, 1000);
    expect(1020, 1, true, 1000);
    /* The record was published. Another record was announced after the last read. */
    expect(1030, 2, true, 1020);
    expect(1040, 3, true, 1030);
    for (uint64_t i = 0; i < 1000; i++)
        expect(1050 + 10 * i, 4 + i, true, 1040 + 10 * i);
    /* A stopped thread holds back the watermark for a tenth of a second. */
    expect(20000, 2000, true, 11040);
    expect(20099, 2000, true, 11040);
    expect(20100, 2000, true, 20100);
    expect(20200, 2000, false, 20200);
    /* A dead thread does not hold back the watermark. */
    expect(20300, 2000, true, 20200);
    process.final = true;
    expect(20310, 2000, true, 20310);
    return EXIT_SUCCESS;
}
