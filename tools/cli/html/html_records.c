#include "html_records.h"

#include "room.h"

#include <string.h>

enum {
    RECORDS_MAX = 1 << 20,
    SITES_MAX = 1 << 18,
    THREADS_MAX = 1 << 14,
    LABELS_MAX = 1 << 16,
    RESOLUTION_FIRST = 1 << 16,
};
#define RESOLUTION_MAX 1e19 /* at this resolution, each lane is a single record */

/* ---- names ---- */

uint32_t ct_html_name(struct ct_html_records *records, const char *text)
{
    return (uint32_t)ct_names_number(&records->names, text, &records->failed).number;
}

/* Limits the number of labels, because a program may give every range a different name. Function names need
 * no limit. */
uint32_t ct_html_label(struct ct_html_records *records, const char *text)
{
    records->names.max = LABELS_MAX;
    const uint32_t number = *text ? ct_html_name(records, text) : 0;
    records->names.max = 0;
    return number;
}

/* ---- threads ---- */

static uint32_t thread_of(struct ct_html_records *records, int64_t process_id, int64_t tid)
{
    const int64_t key[2] = { process_id, tid };
    bool is_new;
    const int64_t found = ct_intern_find(&records->thread_numbers, key);
    if (found)
        return (uint32_t)found - 1;
    if (records->thread_count >= THREADS_MAX && tid != -1)
        return thread_of(records, process_id, -1);
    records->failed |= !ct_make_room(&records->threads, records->thread_count, &records->thread_room,
                                     sizeof(*records->threads)) ||
                       !ct_intern_get(&records->thread_numbers, key, &is_new);
    if (records->failed)
        return 0;
    struct ct_html_thread *thread = &records->threads[records->thread_count];
    *thread = (struct ct_html_thread){ .process_id = process_id, .tid = tid };
    memset(thread->last, -1, sizeof(thread->last));
    return (uint32_t)records->thread_count++;
}

/* ---- sites ---- */

bool ct_html_sites_settle(struct ct_html_records *records)
{
    uint32_t *numbers = calloc(records->site_count + 1, sizeof(*numbers)); /* the new numbers, from 1 */
    struct ct_html_site *sites = malloc((records->site_room + 1) * sizeof(*sites));
    if (!numbers || !sites) {
        free(numbers);
        free(sites);
        return false;
    }
    uint32_t used = 0;
    bool is_new;
    ct_intern_reset(&records->site_numbers, 1);
    for (size_t i = 0; i < records->count; i++) {
        uint32_t *number = &numbers[records->record[i].site];
        if (*number == 0) {
            sites[used] = records->sites[records->record[i].site];
            ct_intern_get(&records->site_numbers, &sites[used].key, &is_new);
            *number = ++used;
        }
        records->record[i].site = *number - 1;
    }
    free(numbers);
    free(records->sites);
    records->sites = sites;
    records->site_count = used;
    return true;
}

/* ---- records ---- */

/* Merges the next record into the last record of its lane if both are too short to be drawn separately.
 * Returns whether the records were merged. */
static bool join(struct ct_html_record *last, const struct ct_html_record *next, double resolution)
{
    if (next->start - last->start >= resolution || last->longest >= resolution || next->longest >= resolution)
        return false;
    if (next->start + next->duration > last->start + last->duration)
        last->duration = next->start + next->duration - last->start;
    last->calls += next->calls;
    if (next->longest > last->longest) {
        last->longest = next->longest;
        last->call_id = next->call_id;
        last->site = next->site;
        last->file = next->file;
    }
    return true;
}

static void append(struct ct_html_records *records, int64_t *last, const struct ct_html_record *record)
{
    if (*last >= 0 && join(&records->record[*last], record, records->resolution))
        return;
    *last = (int64_t)records->count;
    records->record[records->count++] = *record;
}

/* Doubles the resolution and merges the records accordingly. */
static void fold(struct ct_html_records *records)
{
    for (size_t i = 0; i < records->thread_count; i++)
        memset(records->threads[i].last, -1, sizeof(records->threads[i].last));
    records->resolution =
        records->resolution > 0 ? 2 * records->resolution : records->length_ns / RESOLUTION_FIRST + 1;
    const size_t count = records->count;
    records->count = 0;
    for (size_t i = 0; i < count; i++) {
        /* Make a copy, because append() writes to the same array at or before this index. */
        const struct ct_html_record record = records->record[i];
        const struct ct_html_site *site = &records->sites[record.site];
        append(records, &records->threads[site->key.thread].last[site->key.level], &record);
    }
    records->failed |= !ct_html_sites_settle(records);
}

/* Doubles the resolution until half of the sites are free. RESOLUTION_MAX ends the loop, because every record
 * may be in a separate lane, so that there are as many sites as lanes. */
static void make_room_for_sites(struct ct_html_records *records)
{
    records->failed |= !ct_html_sites_settle(records);
    while (!records->failed && records->site_count > SITES_MAX / 2 && records->resolution <= RESOLUTION_MAX)
        fold(records);
}

static uint32_t site_of(struct ct_html_records *records, const struct ct_html_site *wanted)
{
    bool is_new;
    const int64_t found = ct_intern_find(&records->site_numbers, &wanted->key);
    if (found)
        return (uint32_t)found - 1;
    if (records->site_count >= SITES_MAX && records->resolution <= RESOLUTION_MAX)
        make_room_for_sites(records);
    records->failed |=
        !ct_make_room(&records->sites, records->site_count, &records->site_room, sizeof(*records->sites)) ||
        !ct_intern_get(&records->site_numbers, &wanted->key, &is_new);
    if (records->failed)
        return 0;
    records->sites[records->site_count] = *wanted;
    return (uint32_t)records->site_count++;
}

void ct_html_records_add(struct ct_html_records *records, const struct ct_stream_call *call, double start,
                         uint32_t level, uint32_t label)
{
    const struct ct_site *of = &call->site;
    const double duration = (double)(call->id - call->start_ns);
    while (!records->failed && records->count == RECORDS_MAX) {
        fold(records);
        records->failed |= records->count == RECORDS_MAX && records->resolution > RESOLUTION_MAX;
    }
    const struct ct_html_site site = {
        .key = { .name = of->name,
                 .layer = of->layer,
                 .thread = thread_of(records, of->process_id, of->tid),
                 .level = level,
                 .label = label,
                 .status = of->status },
        .category = of->category,
        .status_name = of->status_name,
    };
    const struct ct_html_record record = { .start = start,
                                           .duration = duration,
                                           .longest = duration,
                                           .call_id = call->id,
                                           .file = of->file,
                                           .site = records->failed ? 0 : site_of(records, &site),
                                           .calls = 1 };
    if (!records->failed)
        append(records, &records->threads[site.key.thread].last[level], &record);
}

void ct_html_records_label(struct ct_html_records *records, struct ct_html_record *record, uint32_t label)
{
    struct ct_html_site site = records->sites[record->site];
    site.key.label = label;
    if (records->site_count < SITES_MAX || ct_intern_find(&records->site_numbers, &site.key))
        record->site = site_of(records, &site);
}

bool ct_html_records_begin(struct ct_html_records *records, double length_ns)
{
    *records = (struct ct_html_records){ .length_ns = length_ns > 0 ? length_ns : 0 };
    ct_intern_init(&records->site_numbers, sizeof(records->sites->key), SIZE_MAX, 1);
    ct_intern_init(&records->thread_numbers, 2 * sizeof(int64_t), SIZE_MAX, 1);
    records->record = malloc(RECORDS_MAX * sizeof(*records->record));
    return records->record != NULL;
}

void ct_html_records_finish(struct ct_html_records *records)
{
    ct_names_free(&records->names);
    ct_intern_finish(&records->site_numbers);
    ct_intern_finish(&records->thread_numbers);
    for (size_t i = 0; i < records->thread_count; i++)
        free(records->threads[i].name);
    free(records->threads);
    free(records->record);
    free(records->sites);
}
