/* Holds the records that a page written by `cudatrace html` draws. Called by html.c. A record is one call, or
 * several short calls in a row. A site holds the properties that calls share. The numbers of records and
 * sites are limited, however many calls and threads a trace has. Whenever a limit is reached, the resolution
 * is doubled, and more calls are merged. */
#ifndef CT_HTML_RECORDS_H
#define CT_HTML_RECORDS_H

#include "call_stream.h"
#include "intern.h"
#include "name_numbers.h"

enum { CT_HTML_LEVELS = 8 /* number of lanes per thread, one for each call depth; the same as in page.js */ };

struct ct_html_record {
    double start, duration;     /* ns since the trace began */
    double longest;             /* duration of the longest call in the record, whose site is `site` */
    int64_t call_id;            /* the longest call, or the end of a piece of GPU work */
    uint32_t site, calls, file; /* file: that has the longest call */
};

/* The strings belong to the stream. */
struct ct_html_site {
    struct {
        const char *name, *layer;
        uint32_t thread, level, label; /* label: a name's ID, or 0 if there is none */
        int32_t status;
    } key;
    const char *category, *status_name;
};

/* A thread or a GPU stream shown on the page. The number of entries is limited, and all further threads and
 * streams of a process share one entry. */
struct ct_html_thread {
    int64_t process_id, tid; /* tid: -1 for the entry of all further threads; less for a stream */
    char *name;
    int64_t last[CT_HTML_LEVELS]; /* index of the last record in each lane, or -1 if there is none */
};

struct ct_html_records {
    struct ct_html_record *record;
    size_t count;
    double resolution, length_ns;  /* length_ns: length of the trace */
    struct ct_intern site_numbers; /* numbered from 1 */
    struct ct_html_site *sites;    /* indexed by site number minus 1 */
    size_t site_count, site_room;
    struct ct_intern thread_numbers;
    struct ct_html_thread *threads;
    size_t thread_count, thread_room;
    struct ct_names names;
    bool failed; /* out of memory */
};

bool ct_html_records_begin(struct ct_html_records *records, double length_ns);
void ct_html_records_finish(struct ct_html_records *records);

/* Returns the ID of a string among the names, or 0 if the string is empty or there are too many names. */
uint32_t ct_html_label(struct ct_html_records *records, const char *text);
/* Returns the ID of a string among the names. The number of names is not limited, so use this only for a
 * small set of strings. */
uint32_t ct_html_name(struct ct_html_records *records, const char *text);
/* Adds a call to be drawn in the lane `level`. Sets `failed` if out of memory. A piece of GPU work is added
 * as a call of its stream. A lane's calls must be added in the order in which they begin. */
void ct_html_records_add(struct ct_html_records *records, const struct ct_stream_call *call, double start,
                         uint32_t level, uint32_t label);
/* Gives the record a label, unless there are too many sites. After that, no call can be added. */
void ct_html_records_label(struct ct_html_records *records, struct ct_html_record *record, uint32_t label);
/* Removes sites that no record uses, and renumbers the others. Returns false if out of memory. */
bool ct_html_sites_settle(struct ct_html_records *records);

#endif
