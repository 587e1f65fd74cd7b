/* Holds the records that a page of `cudatrace html` draws. Called by html.c. A record is one call, or several
 * short calls next to each other. A site holds the properties that calls share. Records and sites are
 * limited, however many calls and threads a trace has. Whenever a limit is reached, the resolution doubles
 * and more calls join. */
#ifndef CT_HTML_RECORDS_H
#define CT_HTML_RECORDS_H

#include "call_stream.h"
#include "intern.h"
#include "name_numbers.h"

enum { CT_HTML_LEVELS = 8 /* lanes of a thread, one for each depth of calls; the same in page.js */ };

struct ct_html_record {
    double start, duration; /* ns since the trace began */
    double longest;         /* duration of its longest call; `site` is the site of that call */
    uint32_t site, calls;
};

/* The stream owns the texts. */
struct ct_html_site {
    struct {
        const char *name, *layer;
        uint32_t thread, level, label; /* label: the number of a name, or 0 for none */
        int32_t status;
    } key;
    const char *category, *status_name;
};

/* A page has room for a limited number of threads. All further threads of a process share one entry. */
struct ct_html_thread {
    int64_t process_id, tid; /* tid -1: the further threads */
    char *name;
    int64_t last[CT_HTML_LEVELS]; /* index of the last record of each lane, or -1 for none */
};

struct ct_html_records {
    struct ct_html_record *record;
    size_t count;
    double resolution, length_ns;  /* length_ns: length of the trace */
    struct ct_intern site_numbers; /* numbered from 1 */
    struct ct_html_site *sites;    /* indexed by their numbers, less 1 */
    size_t site_count, site_room;
    struct ct_intern thread_numbers;
    struct ct_html_thread *threads;
    size_t thread_count, thread_room;
    struct ct_names names;
    bool failed; /* out of memory */
};

bool ct_html_records_begin(struct ct_html_records *records, double length_ns);
void ct_html_records_finish(struct ct_html_records *records);

/* Returns a text's number among the names, or 0 if there are too many or the text is empty. */
uint32_t ct_html_label(struct ct_html_records *records, const char *text);
/* Returns a text's number among the names, without a limit. For texts that are few. */
uint32_t ct_html_name(struct ct_html_records *records, const char *text);
/* Adds a call that is drawn at that level. Sets `failed` if memory is short. */
void ct_html_records_add(struct ct_html_records *records, const struct ct_stream_call *call, double start,
                         uint32_t level, uint32_t label);
/* Removes the sites that no record has, and renumbers the others. Returns false if memory is short. */
bool ct_html_sites_settle(struct ct_html_records *records);

#endif
