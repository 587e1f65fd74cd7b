#include "html_records.h"

#include "room.h"

#include <string.h>

enum {
    RECORDS_MAX = 1 << 20,
    PLACES_MAX = 1 << 18,
    THREADS_MAX = 1 << 14,
    LABELS_MAX = 1 << 16,
    RESOLUTION_FIRST = 1 << 16,
};
#define RESOLUTION_MAX 1e19 /* each lane is one record then */

/* ---- names ---- */

uint32_t ct_html_name(struct ct_html_records *records, const char *text)
{
    return (uint32_t)ct_names_number(&records->names, text, &records->failed).number;
}

/* A program may give each range another name; functions are not so many. */
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
    if (records->thread_count >= THREADS_MAX && tid >= 0)
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

/* ---- places ---- */

bool ct_html_places_settle(struct ct_html_records *records)
{
    uint32_t *numbers = calloc(records->place_count + 1, sizeof(*numbers)); /* the new ones, from 1 */
    struct ct_html_place *places = malloc((records->place_room + 1) * sizeof(*places));
    if (!numbers || !places) {
        free(numbers);
        free(places);
        return false;
    }
    uint32_t used = 0;
    bool is_new;
    ct_intern_reset(&records->place_numbers, 1);
    for (size_t i = 0; i < records->count; i++) {
        uint32_t *number = &numbers[records->record[i].place];
        if (*number == 0) {
            places[used] = records->places[records->record[i].place];
            ct_intern_get(&records->place_numbers, &places[used].key, &is_new);
            *number = ++used;
        }
        records->record[i].place = *number - 1;
    }
    free(numbers);
    free(records->places);
    records->places = places;
    records->place_count = used;
    return true;
}

/* ---- records ---- */

/* Of the lane's last record and the next one, whether they are drawn as one, which is then the last. */
static bool join(struct ct_html_record *last, const struct ct_html_record *next, double resolution)
{
    if (next->start - last->start >= resolution || last->longest >= resolution || next->longest >= resolution)
        return false;
    if (next->start + next->duration > last->start + last->duration)
        last->duration = next->start + next->duration - last->start;
    last->calls += next->calls;
    if (next->longest > last->longest) {
        last->longest = next->longest;
        last->place = next->place;
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

/* At twice the resolution. */
static void fold(struct ct_html_records *records)
{
    for (size_t i = 0; i < records->thread_count; i++)
        memset(records->threads[i].last, -1, sizeof(records->threads[i].last));
    records->resolution =
        records->resolution > 0 ? 2 * records->resolution : records->length_ns / RESOLUTION_FIRST + 1;
    const size_t count = records->count;
    records->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ct_html_record record =
            records->record[i]; /* which may be written over: what is kept is no more */
        const struct ct_html_place *place = &records->places[record.place];
        append(records, &records->threads[place->key.thread].last[place->key.level], &record);
    }
    records->failed |= !ct_html_places_settle(records);
}

/* Without end where each record is in a lane of its own: then there are as many places as lanes. */
static void make_room_for_places(struct ct_html_records *records)
{
    records->failed |= !ct_html_places_settle(records);
    while (!records->failed && records->place_count > PLACES_MAX / 2 && records->resolution <= RESOLUTION_MAX)
        fold(records);
}

static uint32_t place_of(struct ct_html_records *records, const struct ct_html_place *wanted)
{
    bool is_new;
    const int64_t found = ct_intern_find(&records->place_numbers, &wanted->key);
    if (found)
        return (uint32_t)found - 1;
    if (records->place_count >= PLACES_MAX && records->resolution <= RESOLUTION_MAX)
        make_room_for_places(records);
    records->failed |= !ct_make_room(&records->places, records->place_count, &records->place_room,
                                     sizeof(*records->places)) ||
                       !ct_intern_get(&records->place_numbers, &wanted->key, &is_new);
    if (records->failed)
        return 0;
    records->places[records->place_count] = *wanted;
    return (uint32_t)records->place_count++;
}

void ct_html_records_add(struct ct_html_records *records, const struct ct_stream_call *call, double start,
                         uint32_t level, uint32_t label)
{
    const struct ct_site *site = &call->site;
    const double duration = (double)(call->id - call->start_ns);
    while (!records->failed && records->count == RECORDS_MAX) {
        fold(records);
        records->failed |= records->count == RECORDS_MAX && records->resolution > RESOLUTION_MAX;
    }
    const struct ct_html_place place = {
        .key = { .name = site->name,
                 .layer = site->layer,
                 .thread = thread_of(records, site->process_id, site->tid),
                 .level = level,
                 .label = label,
                 .status = site->status },
        .category = site->category,
        .status_name = site->status_name,
    };
    const struct ct_html_record record = { .start = start,
                                           .duration = duration,
                                           .longest = duration,
                                           .place = records->failed ? 0 : place_of(records, &place),
                                           .calls = 1 };
    if (!records->failed)
        append(records, &records->threads[place.key.thread].last[level], &record);
}

bool ct_html_records_begin(struct ct_html_records *records, double length_ns)
{
    *records = (struct ct_html_records){ .length_ns = length_ns > 0 ? length_ns : 0 };
    ct_intern_init(&records->place_numbers, sizeof(records->places->key), SIZE_MAX, 1);
    ct_intern_init(&records->thread_numbers, 2 * sizeof(int64_t), SIZE_MAX, 1);
    records->record = malloc(RECORDS_MAX * sizeof(*records->record));
    return records->record != NULL;
}

void ct_html_records_finish(struct ct_html_records *records)
{
    ct_names_free(&records->names);
    ct_intern_finish(&records->place_numbers);
    ct_intern_finish(&records->thread_numbers);
    for (size_t i = 0; i < records->thread_count; i++)
        free(records->threads[i].name);
    free(records->threads);
    free(records->record);
    free(records->places);
}
