#include "call_sums.h"

#include "call_stream.h"
#include "intern.h"
#include "name_numbers.h"
#include "room.h"

#include "duration_bucket.h"

#include <stdlib.h>

/* The strings belong to the names of the sums. */
struct sum {
    int64_t process_id, tid;
    const char *layer, *name, *category;
    int64_t calls, total_ns, inside_ns, min_ns, max_ns, failed, bytes;
};

struct bucket {
    int64_t process_id;
    const char *layer, *name, *category;
    int64_t from_ns, below_ns, calls;
};

/* The row of a site's calls. */
struct place {
    uint64_t number; /* of the site; 0: unused */
    size_t sum;
};
enum { PLACES = 1 << 12 };

struct sums {
    struct sum *sum;
    struct bucket *bucket;
    size_t sums, sum_room, buckets, bucket_room;
    struct ct_names names;
    struct ct_intern sums_found, buckets_found;
    struct place place[PLACES]; /* by the number of the site */
};

/* Returns the single copy of a string, or NULL if out of memory. */
static const char *keep(struct sums *sums, const char *text)
{
    bool failed = false;
    return ct_names_number(&sums->names, text, &failed).text;
}

/* Returns the row of the site's calls, or NULL if out of memory. The stream's strings are equal if their
 * addresses are. */
static struct sum *find_sum(struct sums *sums, const struct ct_site *site)
{
    const int64_t key[] = { site->process_id, site->tid, (int64_t)(uintptr_t)site->layer,
                            (int64_t)(uintptr_t)site->name };
    bool is_new;
    const int64_t number = ct_intern_get(&sums->sums_found, key, &is_new);
    if (number == 0 || (is_new && !ct_make_room(&sums->sum, sums->sums, &sums->sum_room, sizeof(*sums->sum))))
        return NULL;
    struct sum *sum = &sums->sum[number - 1];
    if (!is_new)
        return sum;
    sums->sums++;
    *sum = (struct sum){ .process_id = site->process_id,
                         .tid = site->tid,
                         .layer = keep(sums, site->layer),
                         .name = keep(sums, site->name),
                         .category = keep(sums, site->category),
                         .min_ns = INT64_MAX };
    return sum->layer && sum->name && sum->category ? sum : NULL;
}

static struct sum *sum_of(struct sums *sums, const struct ct_site *site)
{
    struct place *place = &sums->place[site->number % PLACES];
    if (place->number == site->number)
        return &sums->sum[place->sum];
    struct sum *sum = find_sum(sums, site);
    if (sum)
        *place = (struct place){ site->number, (size_t)(sum - sums->sum) };
    return sum;
}

static bool count_duration(struct sums *sums, const struct sum *sum, int64_t duration_ns)
{
    const uint32_t number = ct_duration_bucket(duration_ns > 0 ? (uint64_t)duration_ns : 0);
    const int64_t key[] = { sum->process_id, (int64_t)(uintptr_t)sum->layer, (int64_t)(uintptr_t)sum->name,
                            number };
    bool is_new;
    const int64_t found = ct_intern_get(&sums->buckets_found, key, &is_new);
    if (found == 0 ||
        (is_new && !ct_make_room(&sums->bucket, sums->buckets, &sums->bucket_room, sizeof(*sums->bucket))))
        return false;
    if (is_new)
        sums->bucket[sums->buckets++] =
            (struct bucket){ .process_id = sum->process_id,
                             .layer = sum->layer,
                             .name = sum->name,
                             .category = sum->category,
                             .from_ns = (int64_t)ct_duration_bucket_from(number),
                             .below_ns = (int64_t)ct_duration_bucket_from(number + 1) };
    sums->bucket[found - 1].calls++;
    return true;
}

/* Returns false if out of memory. */
static bool add(struct sums *sums, const struct ct_stream_call *call, int64_t from_ns)
{
    const int64_t duration_ns = call->id - call->start_ns;
    struct sum *sum = sum_of(sums, &call->site);
    if (!sum)
        return false;
    sum->calls++;
    sum->total_ns += duration_ns;
    sum->inside_ns += call->start_ns < from_ns ? call->id - from_ns : duration_ns;
    sum->min_ns = duration_ns < sum->min_ns ? duration_ns : sum->min_ns;
    sum->max_ns = duration_ns > sum->max_ns ? duration_ns : sum->max_ns;
    sum->failed += call->site.has_failed;
    sum->bytes += call->site.status == 0 && call->has_bytes ? call->bytes : 0;
    return count_duration(sums, sum, duration_ns);
}

static int compute(sqlite3 *connection, const struct ct_scope *scope, void **result)
{
    struct ct_stream_call call;
    struct sums *sums = *result = calloc(1, sizeof(*sums));
    if (!sums)
        return SQLITE_NOMEM;
    ct_intern_init(&sums->sums_found, 4 * sizeof(int64_t), SIZE_MAX, 1);
    ct_intern_init(&sums->buckets_found, 4 * sizeof(int64_t), SIZE_MAX, 1);
    struct ct_stream *stream = ct_stream_open(connection, scope);
    if (!stream)
        return SQLITE_ERROR;
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK && ct_stream_next(stream, &call))
        rc = add(sums, &call, scope->from_ns) ? SQLITE_OK : SQLITE_NOMEM;
    if (rc == SQLITE_OK)
        rc = ct_stream_error(stream);
    ct_stream_close(stream);
    return rc;
}

static void release(void *result)
{
    struct sums *sums = result;
    if (!sums)
        return;
    ct_names_free(&sums->names);
    free(sums->sum);
    free(sums->bucket);
    ct_intern_finish(&sums->sums_found);
    ct_intern_finish(&sums->buckets_found);
    free(sums);
}

static const struct ct_computation computation = { .view = "calls", .compute = compute, .release = release };

#define SUM(field_, type_) CT_COMPUTED_COLUMN(#field_, type_, sum, field_)
static const struct ct_computed_column call_sums_columns[] = {
    SUM(process_id, NUMBER),
    SUM(tid, NUMBER),
    SUM(layer, TEXT),
    SUM(name, TEXT),
    SUM(category, TEXT),
    SUM(calls, NUMBER),
    SUM(total_ns, NUMBER),
    SUM(inside_ns, NUMBER),
    SUM(min_ns, NUMBER),
    SUM(max_ns, NUMBER),
    SUM(failed, NUMBER),
    SUM(bytes, NUMBER),
    { 0 },
};
#define BUCKET(field_, type_) CT_COMPUTED_COLUMN(#field_, type_, bucket, field_)
static const struct ct_computed_column call_durations_columns[] = {
    BUCKET(process_id, NUMBER), BUCKET(layer, TEXT),      BUCKET(name, TEXT),    BUCKET(category, TEXT),
    BUCKET(from_ns, NUMBER),    BUCKET(below_ns, NUMBER), BUCKET(calls, NUMBER), { 0 },
};
CT_COMPUTED_TABLE(call_sums, sum, sums, sum, sums);
CT_COMPUTED_TABLE(call_durations, bucket, sums, bucket, buckets);

int ct_call_sums_add(sqlite3 *connection, struct ct_computed_cache *cache)
{
    const int rc = ct_computed_add(connection, &call_sums, cache);
    return rc == SQLITE_OK ? ct_computed_add(connection, &call_durations, cache) : rc;
}
