/* Tests that counts by key remain correct when the table grows or is cleared. Durations are counted in
 * buckets with the same bounds as in the `durations` view. */
#include "duration_bucket.h"
#include "histogram.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static void expect(bool good, const char *what, uint64_t value)
{
    if (good)
        return;
    fprintf(stderr, "histogram: %s at %" PRIu64 "\n", what, value);
    exit(EXIT_FAILURE);
}

/* As in schema/views.sql. */
static void check_bucket(uint64_t ns)
{
    const uint32_t bucket = ct_duration_bucket(ns);
    expect(bucket < CT_DURATION_BUCKETS, "a bucket beyond the last", ns);
    const uint64_t from = ct_duration_bucket_from(bucket), below = ct_duration_bucket_from(bucket + 1);
    expect(from <= ns && ns < below, "a duration outside of its bucket", ns);
    const uint64_t middle = (from + below) / 2, off = middle > ns ? middle - ns : ns - middle;
    expect(off <= ns / 32 + 1, "the middle of a bucket too far", ns);
}

struct seen {
    uint64_t keys, counts;
};

static int see(const struct ct_histogram_count *count, void *data)
{
    struct seen *seen = data;
    seen->keys++;
    seen->counts += count->count;
    expect(count->count == count->key % 3 + 1, "how often a key came", count->key);
    expect(count->first_ns == 1000 && count->last_ns == 1000 + count->key % 3, "when it came", count->key);
    return 0;
}

static int stop_at_once(const struct ct_histogram_count *count, void *data)
{
    (void)count;
    ++*(int *)data;
    return 7;
}

static void check_counts(struct ct_histogram *histogram, uint64_t keys)
{
    uint64_t wanted = 0;
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t key = 0; key < keys; key++) {
            if (key % 3 >= round) {
                expect(ct_histogram_add(histogram, key, 1000 + round), "no memory", key);
                wanted++;
            }
        }
    }
    struct seen seen = { 0 };
    expect(ct_histogram_each(histogram, see, &seen) == 0, "each", keys);
    expect(seen.keys == keys && seen.counts == wanted, "keys and counts", seen.keys);
    int calls = 0;
    expect(ct_histogram_each(histogram, stop_at_once, &calls) == (keys > 0 ? 7 : 0) && calls == (keys > 0),
           "stopping", keys);
    ct_histogram_clear(histogram);
    seen = (struct seen){ 0 };
    ct_histogram_each(histogram, see, &seen);
    expect(seen.keys == 0, "keys after clearing", seen.keys);
}

int main(void)
{
    for (uint64_t ns = 0; ns < 100000; ns++)
        check_bucket(ns);
    for (int bit = 5; bit < 63; bit++) {
        check_bucket(UINT64_C(1) << bit);
        check_bucket((UINT64_C(1) << bit) - 1);
        check_bucket((UINT64_C(1) << bit) + (UINT64_C(1) << (bit - 1)));
    }
    check_bucket(INT64_MAX);
    uint32_t before = 0;
    for (uint64_t ns = 0; ns < 1000000; ns++) {
        const uint32_t bucket = ct_duration_bucket(ns);
        expect(bucket == before || bucket == before + 1, "a gap between buckets", ns);
        before = bucket;
    }

    struct ct_histogram histogram = { 0 };
    static const uint64_t sizes[] = { 0, 1, 40, 47, 48, 63, 64, 1000, 10000, 5 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        check_counts(&histogram, sizes[i]);
    ct_histogram_finish(&histogram);
    return EXIT_SUCCESS;
}
