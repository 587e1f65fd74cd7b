/* Converts a call in JSON lines to a recording's event. The line for the beginning of a call contains details
 * of the call and of everything that it refers to. */
#ifndef CT_JSON_CALL_H
#define CT_JSON_CALL_H

#include "dump_buffer.h"
#include "intern.h"
#include "interner.h"
#include "json_value.h"

struct ct_json_line {
    const json_t *details; /* NULL if there are none */
    const char *name, *layer;
    const char *process, *thread; /* identities */
    int64_t instance;             /* of the process, among those with the same identity */
    int64_t op_id;
    int64_t at_ns; /* from ts */
    bool is_begin;
};

/* A call that has begun. */
struct ct_json_call {
    int64_t op_id;
    struct ct_dump_call body; /* until the call returns, end_ns is its start according to `ts` */
    uint8_t *payload;         /* freed by its owner */
    size_t payload_bytes;
};

/* A frame under construction, and the IDs assigned to functions, kernels and streams, which are valid for the
 * whole file. An event defines each ID before a call uses it. */
struct ct_json_frame {
    struct ct_dump_buffer events;
    struct ct_intern streams;
    struct ct_interner functions, kernels, stream_names;
    int64_t *stream_name; /* the number of each stream's name, by stream number - 1; 0: no name */
    size_t stream_count, stream_room;
};

void ct_json_frame_init(struct ct_json_frame *frame);
void ct_json_frame_finish(struct ct_json_frame *frame);

/* Fills in a call from its line. The caller must have set the process, the thread and the times. If out of
 * memory, returns false and leaves the call without a payload. */
bool ct_json_call_fill(struct ct_json_frame *frame, const struct ct_json_line *line,
                       struct ct_json_call *call);

#endif
