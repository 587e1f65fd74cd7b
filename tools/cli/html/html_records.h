/* What a page of `cudatrace html` draws: records, each one call or several short ones beside each other, of
 * places, each of which is what calls have in common. There is room for so many records and places, however
 * many calls, threads and sites a trace has: the resolution doubles until there is. */
#ifndef CT_HTML_RECORDS_H
#define CT_HTML_RECORDS_H

#include "call_stream.h"
#include "name_numbers.h"

enum { CT_HTML_LEVELS = 8 /* of a thread's calls, as page.js has them */ };

struct ct_html_record {
    double start, duration; /* ns since the trace began */
    double longest;         /* of its calls, whose place it has */
    uint32_t place, calls;
};

/* Texts are those of the stream. */
struct ct_html_place {
    const char *name, *category, *layer, *status_name;
    int32_t status;
    uint32_t thread, level, label; /* the label is one of the names, 0 for none */
    uint32_t number;
    bool is_used;
};

/* Of more threads than a page has room for, those of a process are one that has no number. */
struct ct_html_thread {
    int64_t process_id, tid; /* tid -1: further ones */
    char *name;
    int64_t last[CT_HTML_LEVELS]; /* record of each lane, -1 for none */
};

struct ct_html_records {
    struct ct_html_record *record;
    size_t count;
    double resolution, length_ns; /* length: of the trace */
    struct ct_html_place *places; /* open addressing */
    size_t place_mask;
    uint32_t place_count;
    struct ct_html_thread *threads;
    uint32_t thread_count, thread_room;
    uint32_t *thread_slots; /* open addressing: a thread's place + 1 */
    size_t thread_mask;
    struct ct_names names;
    const char **texts; /* of the names, from 1 */
    size_t text_room;
    bool failed; /* out of memory */
};

bool ct_html_records_begin(struct ct_html_records *records, double length_ns);
void ct_html_records_finish(struct ct_html_records *records);

/* A text's place among the texts; 0 for one too many, and for "". */
uint32_t ct_html_label(struct ct_html_records *records, const char *text);
/* The same of a text of which there are few. */
uint32_t ct_html_name(struct ct_html_records *records, const char *text);
/* Takes a call that is drawn at that level; `failed` says whether that went well. */
void ct_html_records_add(struct ct_html_records *records, const struct ct_stream_call *call, double start,
                         uint32_t level, uint32_t label);
/* The places by their numbers, at the beginning of `places`; their number. Nothing can be added after that.
 */
size_t ct_html_places_sort(struct ct_html_records *records);

#endif
