#include "html_records.h"

#include <stdlib.h>
#include <string.h>

enum {
    RECORDS_MAX = 1 << 20,
    PLACES_MAX = 1 << 18,
    THREADS_MAX = 1 << 14,
    LABELS_MAX = 1 << 16,
    SLOTS_FIRST = 1024,
    RESOLUTION_FIRST = 1 << 16,
};
#define RESOLUTION_MAX 1e19 /* each lane is one record then */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
}

/* ---- names ---- */

uint32_t ct_html_name(struct ct_html_records *records, const char *text)
{
    const struct ct_name name = ct_names_number(&records->names, text, &records->failed);
    if (name.is_new && name.number >= records->text_room) {
        const size_t room = records->text_room ? 2 * records->text_room : 256;
        const char **texts = realloc(records->texts, room * sizeof(*texts));
        records->failed |= !texts;
        if (!texts)
            return 0;
        records->texts = texts;
        records->text_room = room;
    }
    if (name.is_new)
        records->texts[name.number] = name.text;
    return (uint32_t)name.number;
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

static uint32_t *thread_slot(const struct ct_html_records *records, int64_t process_id, int64_t tid)
{
    const uint64_t hash = mix(mix(0, (uint64_t)process_id), (uint64_t)tid);
    for (size_t i = hash >> 32;; i++) {
        uint32_t *slot = &records->thread_slots[i & records->thread_mask];
        const struct ct_html_thread *thread = &records->threads[*slot ? *slot - 1 : 0];
        if (!*slot || (thread->process_id == process_id && thread->tid == tid))
            return slot;
    }
}

static bool make_room_for_threads(struct ct_html_records *records)
{
    const uint32_t room = 2 * records->thread_room;
    struct ct_html_thread *threads = realloc(records->threads, room * sizeof(*threads));
    if (threads)
        records->threads = threads;
    uint32_t *slots = calloc(2 * (size_t)room, sizeof(*slots));
    if (!threads || !slots) {
        free(slots);
        return false;
    }
    free(records->thread_slots);
    records->thread_slots = slots;
    records->thread_mask = 2 * (size_t)room - 1;
    records->thread_room = room;
    for (uint32_t i = 0; i < records->thread_count; i++)
        *thread_slot(records, threads[i].process_id, threads[i].tid) = i + 1;
    return true;
}

static uint32_t thread_of(struct ct_html_records *records, int64_t process_id, int64_t tid)
{
    uint32_t *slot = thread_slot(records, process_id, tid);
    if (*slot)
        return *slot - 1;
    if (records->thread_count >= THREADS_MAX && tid >= 0)
        return thread_of(records, process_id, -1);
    if (records->thread_count == records->thread_room) {
        records->failed |= !make_room_for_threads(records);
        if (records->failed)
            return 0;
        slot = thread_slot(records, process_id, tid);
    }
    struct ct_html_thread *thread = &records->threads[records->thread_count];
    *thread = (struct ct_html_thread){ .process_id = process_id, .tid = tid };
    memset(thread->last, -1, sizeof(thread->last));
    *slot = ++records->thread_count;
    return *slot - 1;
}

/* ---- places ---- */

static struct ct_html_place *place_slot(struct ct_html_place *places, size_t mask,
                                        const struct ct_html_place *wanted)
{
    uint64_t hash = mix(0, wanted->thread | (uint64_t)wanted->level << 32);
    hash = mix(hash, (uintptr_t)wanted->name);
    hash = mix(hash, wanted->label | (uint64_t)(uint32_t)wanted->status << 32);
    for (size_t i = hash >> 32;; i++) {
        struct ct_html_place *place = &places[i & mask];
        if (!place->is_used || (place->thread == wanted->thread && place->level == wanted->level &&
                                place->label == wanted->label && place->status == wanted->status &&
                                place->name == wanted->name && place->layer == wanted->layer))
            return place;
    }
}

static bool lay_out(struct ct_html_records *records, size_t slots)
{
    struct ct_html_place *places = calloc(slots, sizeof(*places));
    if (!places)
        return false;
    for (size_t i = 0; records->places && i <= records->place_mask; i++) {
        if (records->places[i].is_used)
            *place_slot(places, slots - 1, &records->places[i]) = records->places[i];
    }
    free(records->places);
    records->places = places;
    records->place_mask = slots - 1;
    return true;
}

/* Takes away the places that no record has, and numbers the others anew. */
static bool drop_unused_places(struct ct_html_records *records)
{
    enum { UNUSED = UINT32_MAX };
    uint32_t *numbers = malloc(((size_t)records->place_count + 1) * sizeof(*numbers)), used = 0;
    if (!numbers)
        return false;
    memset(numbers, 0xff, ((size_t)records->place_count + 1) * sizeof(*numbers));
    for (size_t i = 0; i < records->count; i++) {
        uint32_t *number = &numbers[records->record[i].place];
        *number = *number == (uint32_t)UNUSED ? used++ : *number;
        records->record[i].place = *number;
    }
    for (size_t i = 0; i <= records->place_mask; i++) {
        struct ct_html_place *place = &records->places[i];
        place->is_used = place->is_used && numbers[place->number] != (uint32_t)UNUSED;
        if (place->is_used)
            place->number = numbers[place->number];
    }
    records->place_count = used;
    free(numbers);
    return lay_out(records, records->place_mask + 1);
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
    int64_t **lanes = calloc((size_t)records->place_count + 1, sizeof(*lanes));
    records->failed |= !lanes;
    if (!lanes)
        return;
    for (size_t i = 0; i <= records->place_mask; i++) {
        const struct ct_html_place *place = &records->places[i];
        if (place->is_used)
            lanes[place->number] = &records->threads[place->thread].last[place->level];
    }
    for (uint32_t i = 0; i < records->thread_count; i++)
        memset(records->threads[i].last, -1, sizeof(records->threads[i].last));
    records->resolution =
        records->resolution > 0 ? 2 * records->resolution : records->length_ns / RESOLUTION_FIRST + 1;
    const size_t count = records->count;
    records->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ct_html_record record =
            records->record[i]; /* which may be written over: what is kept is no more */
        append(records, lanes[record.place], &record);
    }
    free(lanes);
    records->failed |= !drop_unused_places(records);
}

/* Without end where each record is in a lane of its own: then there are as many places as lanes. */
static void make_room_for_places(struct ct_html_records *records)
{
    records->failed |= !drop_unused_places(records);
    while (!records->failed && records->place_count > PLACES_MAX / 2 && records->resolution <= RESOLUTION_MAX)
        fold(records);
}

static uint32_t place_of(struct ct_html_records *records, const struct ct_html_place *wanted)
{
    struct ct_html_place *place = place_slot(records->places, records->place_mask, wanted);
    if (place->is_used)
        return place->number;
    if (records->place_count >= PLACES_MAX && records->resolution <= RESOLUTION_MAX)
        make_room_for_places(records);
    if (2 * (size_t)records->place_count >= records->place_mask)
        records->failed |= !lay_out(records, 2 * (records->place_mask + 1));
    if (records->failed)
        return 0;
    place = place_slot(records->places, records->place_mask, wanted);
    *place = *wanted;
    place->is_used = true;
    place->number = records->place_count++;
    return place->number;
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
    const struct ct_html_place place = { .name = site->name,
                                         .category = site->category,
                                         .layer = site->layer,
                                         .status_name = site->status_name,
                                         .status = site->status,
                                         .thread = thread_of(records, site->process_id, site->tid),
                                         .level = level,
                                         .label = label };
    const struct ct_html_record record = { .start = start,
                                           .duration = duration,
                                           .longest = duration,
                                           .place = records->failed ? 0 : place_of(records, &place),
                                           .calls = 1 };
    if (!records->failed)
        append(records, &records->threads[place.thread].last[level], &record);
}

static int compare_places(const void *a, const void *b)
{
    const struct ct_html_place *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

size_t ct_html_places_sort(struct ct_html_records *records)
{
    records->failed |= !drop_unused_places(records);
    size_t used = 0;
    for (size_t i = 0; i <= records->place_mask; i++) {
        if (records->places[i].is_used)
            records->places[used++] = records->places[i];
    }
    qsort(records->places, used, sizeof(*records->places), compare_places);
    return used;
}

bool ct_html_records_begin(struct ct_html_records *records, double length_ns)
{
    *records = (struct ct_html_records){ .length_ns = length_ns > 0 ? length_ns : 0,
                                         .thread_room = SLOTS_FIRST / 2 };
    records->record = malloc(RECORDS_MAX * sizeof(*records->record));
    return lay_out(records, SLOTS_FIRST) && make_room_for_threads(records) && records->record;
}

void ct_html_records_finish(struct ct_html_records *records)
{
    ct_names_free(&records->names);
    for (uint32_t i = 0; i < records->thread_count; i++)
        free(records->threads[i].name);
    free(records->threads);
    free(records->thread_slots);
    free(records->record);
    free(records->places);
    free(records->texts);
}
