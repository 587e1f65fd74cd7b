/* A call as JSON lines tell of it, made into the event of a recording: what it was and what it names are told
 * by the details of the line that begins it. */
#ifndef CT_JSON_CALL_H
#define CT_JSON_CALL_H

#include "dump_buffer.h"
#include "intern.h"
#include "text_numbers.h"

#include <jansson.h>

struct ct_json_line {
    const json_t *details; /* NULL for none */
    const char *name, *layer;
    int64_t op_id, pid, tid;
    int64_t at_ns; /* ts */
    bool is_begin;
};

/* A call that has begun. */
struct ct_json_call {
    int64_t op_id;
    struct ct_dump_call body; /* end_ns: when it began, by ts, until it returns */
    uint8_t *payload;         /* its owner frees it */
    size_t payload_bytes;
};

/* A frame in the making, and the numbers that functions, kernels and streams have in all frames of the file:
 * an event explains a number before a call has it. */
struct ct_json_frame {
    struct ct_dump_buffer events;
    struct ct_intern streams;
    struct ct_texts functions, kernels, stream_names;
    int64_t *stream_name; /* of each stream, by number less 1: its name's number; 0: none */
    size_t stream_count, stream_room;
};

void ct_json_frame_init(struct ct_json_frame *frame);
void ct_json_frame_finish(struct ct_json_frame *frame);

/* Fills in all of the call that its line tells, but its process, thread and times: these are filled in
 * before. Returns false without memory; the call has no payload then. */
bool ct_json_call_fill(struct ct_json_frame *frame, const struct ct_json_line *line,
                       struct ct_json_call *call);

static inline int64_t ct_json_integer(const json_t *object, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

static inline const char *ct_json_text(const json_t *object, const char *name, const char *otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? json_string_value(value) : otherwise;
}

#endif
