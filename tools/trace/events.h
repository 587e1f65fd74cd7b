/* Turns a stream's calls into beginnings and returns, ordered by time, using bounded memory. */
#ifndef CT_EVENTS_H
#define CT_EVENTS_H

#include "call_stream.h"
#include "intern.h"

struct ct_event {
    int64_t at_ns;
    bool is_begin;
    struct ct_stream_call call;
    /* The call or range began inside another one that ends before it does. Such crossings occur if ranges
     * belong to two domains, or if a range is popped inside a call. The value is the same for a call's
     * beginning and its return. Started ranges always count as crossing. */
    bool is_across;
    /* The enclosing call or pushed range in the same thread. `layer` is NULL if there is none. */
    struct ct_enclosing {
        int64_t id, start_ns;
        const char *layer;
        int64_t
            outermost_id; /* the outermost runtime or driver call, which may be the enclosing one; 0: none */
    } around;
};

struct ct_nest;
struct ct_moment;
struct ct_held;

struct ct_events {
    struct ct_stream *stream;
    struct ct_moment *heap; /* beginnings, earliest first */
    size_t count, room;
    struct ct_moment *returns; /* in the order of time, from `first_return` */
    size_t first_return, return_count, return_room;
    uint64_t order;
    struct ct_held *held; /* the calls to which the entries refer */
    size_t held_count, held_room;
    uint32_t free;                   /* the first free slot in `held`; 0: none */
    int64_t until_ns;                /* events before this time are due */
    struct ct_stream_call long_call; /* the next long call in order of start time */
    struct ct_intern threads;        /* numbers the threads in `open`, starting at 1 */
    struct ct_nest *open;
    size_t open_count, open_room;
    bool has_long, failed;
};

void ct_events_begin(struct ct_events *events, struct ct_stream *stream);
/* Adds the stream's next call. All calls must be added, in the stream's order. */
void ct_events_add(struct ct_events *events, const struct ct_stream_call *call);
/* Makes all remaining events due, after the last call has been added. */
void ct_events_end(struct ct_events *events);
/* Returns the next due event in *event. Returns false if more calls must be added first, or if out of memory
 * (`failed`). */
bool ct_events_next(struct ct_events *events, struct ct_event *event);
void ct_events_finish(struct ct_events *events);

#endif
