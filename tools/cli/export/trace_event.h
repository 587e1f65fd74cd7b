/* Prints the events that two formats of `cudatrace export` share: chrome and pytorch. Both use the Trace
 * Event Format (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU). Events and
 * arguments for GPU work have the names used by Kineto, the library of PyTorch's profiler
 * (https://github.com/pytorch/kineto, libkineto/src/output_json.cpp and CuptiActivity.cpp). */
#ifndef CT_TRACE_EVENT_H
#define CT_TRACE_EVENT_H

#include "export_work.h"

/* Prints what separates an event from the previous one. *has_events is false before the first event. */
void ct_trace_event_begin(struct ct_export *to, bool *has_events);
/* Prints a member with a time in microseconds. */
void ct_trace_event_us(struct ct_export *to, const char *name, int64_t ns);
/* Prints the value of a metadata event, for example of `process_name`. Zero as `tid` means the process. */
void ct_trace_event_label(struct ct_export *to, bool *has_events, const char *what, const char *key,
                          int64_t pid, int64_t tid, const char *value);
void ct_trace_event_process_names(struct ct_export *to, bool *has_events);
/* Prints the name of a thread, from a row of ct_sql_exports_threads. */
bool ct_trace_event_thread_name(struct ct_export *to, bool *has_events, sqlite3_stmt *row);

/* A piece of work on a track, and the arrow from the call that caused it. */
struct ct_trace_event_work {
    const struct ct_work *work;
    int64_t pid, tid; /* of the track */
    int64_t call_pid; /* of the call's track */
    int64_t arrow;    /* the arrow's ID */
};
void ct_trace_event_work(struct ct_export *to, bool *has_events, const struct ct_trace_event_work *on);

#endif
