/* Turns the calls of a stream into beginnings and returns, in the order of time, in bounded memory. */
#ifndef CT_EVENTS_H
#define CT_EVENTS_H

#include "call_stream.h"
#include "intern.h"

struct ct_event {
    int64_t at_ns;
    bool is_begin;
    struct ct_stream_call call;
    /* It began within another call or range that ends before it. That happens with ranges of two domains, and
     * with a range that is popped within a call. Both events of a call have the same value. Started ranges
     * always count as across. */
    bool is_across;
    /* The call or pushed range, in the same thread, within which it began. `layer` is NULL if there is
     * none. */
    struct ct_enclosing {
        int64_t id, start_ns;
        const char *layer;
        bool in_call; /* it is a runtime or driver call, or within one */
    } around;
};

struct ct_nest;
struct ct_moment;
struct ct_held;

struct ct_events {
    struct ct_stream *stream;
    struct ct_moment *heap; /* beginnings and returns, the earliest first */
    size_t count, room;
    uint64_t order;
    struct ct_held *held; /* the calls to which entries of the heap refer */
    size_t held_count, held_room;
    uint32_t free;                   /* the first free slot of `held`; 0: none */
    int64_t until_ns;                /* events before this moment are due */
    struct ct_stream_call long_call; /* the next long call, by its start */
    struct ct_intern threads;        /* numbers the threads in `open` from 1 */
    struct ct_nest *open;
    size_t open_count, open_room;
    bool has_long, failed;
};

void ct_events_begin(struct ct_events *events, struct ct_stream *stream);
/* Takes the next call of the stream. All calls must be passed, in the stream's order. */
void ct_events_add(struct ct_events *events, const struct ct_stream_call *call);
/* Called after the last call. All remaining events are then due. */
void ct_events_end(struct ct_events *events);
/* Gets the next event that is due. Returns false if more calls must be added first, or memory ran out
 * (`failed`). */
bool ct_events_next(struct ct_events *events, struct ct_event *event);
void ct_events_finish(struct ct_events *events);

#endif
