/* Lists the calls that have not returned, for formats that nest the calls of a thread. */
#ifndef CT_EXPORT_OPEN_H
#define CT_EXPORT_OPEN_H

#include "export_format.h"

struct ct_export_open_call {
    int64_t process_id, tid, start_ns;
    /* The call or range began inside another one that has returned, for example inside a range of another
     * domain. */
    bool is_across;
};

/* Must be zeroed before use. */
struct ct_export_open_calls {
    struct ct_export_open_call *call; /* in the order of ct_export_each_open_call() */
    size_t count, room;
    size_t next; /* the first one that did not begin before the last event */
};

/* Adds a row of ct_export_each_open_call(). Returns false if out of memory. */
bool ct_export_open_calls_add(struct ct_export_open_calls *calls, sqlite3_stmt *row);
/* Sets `is_across` for the open calls that began inside the event's call. Must be called for all events that
 * begin a call, in chronological order. */
void ct_export_open_calls_pass(struct ct_export_open_calls *calls, const struct ct_event *event);
void ct_export_open_calls_finish(struct ct_export_open_calls *calls);

#endif
