/* Ranges and marks of the application. Called by nvtx.c. */
#ifndef CT_RANGE_H
#define CT_RANGE_H

#include "hook.h"

#include <wchar.h>

#pragma GCC visibility push(hidden)

/* Rows of the functions under which they are recorded; CT_ROWS_ALL until they are known. */
extern uint32_t ct_range_row_push, ct_range_row_start, ct_range_row_mark;

enum {
    CT_DOMAINS_MAX = 1024,         /* the last one stands for all that exceed it */
    CT_RANGE_MESSAGE_BYTES = 4096, /* with its NUL; what exceeds it is cut at a character */
};

/* A domain by its name: the same number for the same name. Never 0, which is the default domain. */
uint32_t ct_range_domain(const char *name);
/* Names a category of a domain. */
void ct_range_name_category(uint32_t domain, uint32_t category, const char *name);

/* What the application says of a range. One of the first three at most is set. `frame` here and below is that
 * of the function which the application called: what lies at or below it is not open any more. */
struct ct_said {
    const char *message;
    const wchar_t *wide;
    uint64_t registered; /* string number of ct_names_string() */
    const void *frame;
    uint64_t payload;
    uint32_t domain;
    uint32_t category;
    uint32_t color;
    uint32_t payload_type; /* as in struct ct_range */
};

/* The level of the range in its thread and domain, from 0; CT_NVTX_NO_PUSH_POP_TRACKING when there is none to
 * pop, and in a signal handler that interrupted one of these functions. */
int ct_range_push(const struct ct_said *said);
int ct_range_pop(uint32_t domain, const void *frame);
/* A range of the process: any thread may end it. Never 0. */
uint64_t ct_range_start(const struct ct_said *said);
void ct_range_end(uint64_t id, const void *frame);
void ct_range_mark(const struct ct_said *said);

/* ---- what the files of ranges share ---- */

/* A range from its start to its end. */
struct ct_range_kept {
    uint64_t start; /* ticks */
    uint64_t payload;
    const char *text;    /* the message */
    uint32_t text_bytes; /* with its NUL; 0 for none */
    uint32_t epoch;      /* of the process when it started; 0: nothing was recorded then */
    uint32_t domain, category, color, payload_type;
};

enum {
    CT_RANGE_NAME_BYTES = 256, /* of domains and categories, with their NUL */
    CT_RANGE_PAYLOAD_BYTES = sizeof(struct ct_range) + CT_RANGE_MESSAGE_BYTES + 2 * CT_RANGE_NAME_BYTES,
};
static_assert(CT_RANGE_PAYLOAD_BYTES <= (CT_SLOTS_MAX - 1) * CT_SLOT_BYTES, "fits a record");

/* range_text.c */

/* Takes over what is said, start and epoch excepted. A message that may not outlast the call is copied to
 * `room`, CT_RANGE_MESSAGE_BYTES of it; the bytes used there. */
uint32_t ct_range_keep(struct ct_range_kept *kept, const struct ct_said *said, char *room);
/* Writes the record of a range that ends now: start 0 for a mark. `thread` is held. */
struct ct_range_thread;
void ct_range_record(struct ct_producer *producer, uint32_t row, const struct ct_range_kept *kept,
                     uint32_t depth, uint64_t id, struct ct_range_thread *thread);
/* Wide characters as UTF-8 with a NUL, cut to fit; the bytes written, NUL included. `room` is at least 1. */
size_t ct_range_narrow(char *to, size_t room, const wchar_t *from);
/* Text, cut at a character to fit, with a NUL; the bytes written. `room` is at least 1. */
size_t ct_range_copy(char *to, size_t room, const char *from);

/* range.c */

/* The calling thread's room to work in, held until given back; NULL without memory, and when a signal handler
 * has interrupted its own thread, which *cause tells. `frame` as in struct ct_said. */
struct ct_range_thread *ct_range_hold(const void *frame, enum ct_loss_cause *cause);
void ct_range_release(struct ct_range_thread *thread);
char *ct_range_room(struct ct_range_thread *thread);            /* CT_RANGE_MESSAGE_BYTES */
uint64_t *ct_range_scratch(struct ct_range_thread *thread);     /* CT_RANGE_PAYLOAD_BYTES */
uintptr_t ct_range_place(const struct ct_range_thread *thread); /* the holder's frame */
/* Counts a range that cannot be kept. */
void ct_range_lose(uint32_t row, enum ct_loss_cause cause);
/* Calls and ranges that are open around `frame`; 0 without a lane. */
uint32_t ct_range_depth(const struct ct_producer *producer, const void *frame);
/* Whether a range that was kept is one of the segment that `producer` writes to. */
static inline bool ct_range_lasts(const struct ct_range_kept *kept, const struct ct_producer *producer)
{
    return producer && kept->epoch == (producer == &ct_unlaned ? ct_process_epoch() : producer->epoch);
}

#pragma GCC visibility pop

#endif
