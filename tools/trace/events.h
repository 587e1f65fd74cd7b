/* The calls of a stream as their beginnings and returns, in the order of time, in bounded memory. */
#ifndef CT_EVENTS_H
#define CT_EVENTS_H

#include "call_stream.h"
#include "intern.h"

struct ct_event {
    int64_t at_ns;
    bool is_begin;
    struct ct_stream_call call;
    /* It begins in one that ends before it: ranges of two domains may, and one that is popped in a call.
     * Where it is true of the beginning it is of the end; started ranges always do, as far as this is
     * concerned. */
    bool is_across;
    /* The call or pushed range of its thread that it began in; its layer is NULL where there is none. */
    struct ct_enclosing {
        int64_t id, start_ns;
        const char *layer;
        bool in_call; /* it is one of the runtime or the driver, or lies in one */
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
    struct ct_held *held; /* the calls of the heap */
    size_t held_count, held_room;
    uint32_t free;                   /* the first free slot of `held`; 0: none */
    int64_t until_ns;                /* events before this moment are due */
    struct ct_stream_call long_call; /* the next call that took long, by its start */
    struct ct_intern threads;        /* numbers, from 1, of the threads in `open` */
    struct ct_nest *open;
    size_t open_count, open_room;
    bool has_long, failed;
};

void ct_events_begin(struct ct_events *events, struct ct_stream *stream);
/* Takes the next call of the stream: all of them have to come, in its order. */
void ct_events_add(struct ct_events *events, const struct ct_stream_call *call);
/* Behind the last call: all that is left is due. */
void ct_events_end(struct ct_events *events);
/* The next event that is due; false when more calls have to come first, or memory ran out (`failed`). */
bool ct_events_next(struct ct_events *events, struct ct_event *event);
void ct_events_finish(struct ct_events *events);

#endif
