#include "json_call.h"

#include "detail.h"
#include "fields.h"
#include "names.h"
#include "record.h"
#include "room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANGE_TEXT_BYTES = CT_PAYLOAD_MAX - sizeof(struct ct_range)
}; /* the maximum for all texts of a
    * range */

void ct_json_frame_init(struct ct_json_frame *frame)
{
    *frame = (struct ct_json_frame){ 0 };
    ct_intern_init(&frame->streams, 2 * sizeof(int64_t), SIZE_MAX, 1);
    frame->functions.next = frame->kernels.next = frame->stream_names.next = 1;
}

void ct_json_frame_finish(struct ct_json_frame *frame)
{
    ct_intern_finish(&frame->streams);
    ct_interner_finish(&frame->functions);
    ct_interner_finish(&frame->kernels);
    ct_interner_finish(&frame->stream_names);
    ct_dump_buffer_finish(&frame->events);
    free(frame->stream_name);
}

/* Returns an integer member, or 0 if the member is missing or out of range. */
static uint32_t small(const json_t *object, const char *name)
{
    const int64_t value = ct_json_integer(object, name, 0);
    return value >= 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static bool is_one(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_true(value) || (json_is_integer(value) && json_integer_value(value) != 0);
}

/* Returns the ID of a string made of two parts, or 0 if out of memory. The first part must not contain the
 * byte that separates the two. */
static int64_t number_of(struct ct_interner *texts, const char *first, const char *second, bool *is_new)
{
    char *whole;
    if (asprintf(&whole, "%s\x1f%s", first, second) < 0)
        return 0;
    const int64_t number = ct_interner_get(texts, whole, is_new);
    free(whole);
    return number;
}

/* Returns a copy that fits into a recording with the other two texts of a function. The copy ends with a
 * whole character. */
static char *cut(const char *text)
{
    enum { MOST = 16 * 1024 };
    size_t bytes = strnlen(text, MOST);
    while (bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80)
        bytes--;
    return strndup(text, bytes);
}

static bool name_function(struct ct_json_frame *frame, const struct ct_json_line *line,
                          struct ct_dump_call *body)
{
    bool is_new = false;
    char *texts[] = { cut(line->layer), cut(line->name), cut(ct_json_text(line->details, "category", "")) };
    if (texts[0] && texts[1] && texts[2])
        body->function_id = number_of(&frame->functions, texts[0], texts[1], &is_new);
    const struct ct_dump_function function = { body->function_id };
    const bool good =
        body->function_id != 0 && (!is_new || ct_dump_add_texts(&frame->events, CT_DUMP_FUNCTION, &function,
                                                                (const char *const *)texts));
    for (int i = 0; i < 3; i++)
        free(texts[i]);
    return good;
}

/* Adds a note that defines an ID used in calls. */
static bool note(struct ct_json_frame *frame, const struct ct_json_call *call, enum ct_kind kind,
                 int64_t value, const void *head, size_t head_bytes, const char *name)
{
    const size_t most = kind == CT_KIND_STRING ? CT_DUMP_STRING_MAX - 1 : CT_STRING_MAX - head_bytes;
    const size_t bytes = strnlen(name, most);
    struct ct_dump_call body = call->body;
    body.function_id = 0;
    body.kind = (uint8_t)kind;
    body.value = (uint64_t)value;
    body.flags = 0;
    uint8_t *to = ct_dump_add(&frame->events, CT_DUMP_NOTE, &body, head_bytes + bytes + 1);
    if (!to)
        return false;
    memcpy(to, head, head_bytes);
    memcpy(to + head_bytes, name, bytes);
    to[head_bytes + bytes] = '\0';
    return true;
}

/* Adds a note if a stream was renamed or lost its name. */
static bool name_stream(struct ct_json_frame *frame, const struct ct_json_line *line,
                        const struct ct_json_call *call, int64_t stream)
{
    const char *name = ct_json_text(line->details, "stream_name", "");
    bool is_new = false;
    const int64_t key[] = { call->body.segment_id, stream };
    if (!*name && ct_intern_find(&frame->streams, key) == 0)
        return true;
    const int64_t number = ct_intern_get(&frame->streams, key, &is_new);
    if (number == 0)
        return false;
    if (is_new) {
        if (!ct_make_room(&frame->stream_name, frame->stream_count, &frame->stream_room,
                          sizeof(*frame->stream_name)))
            return false;
        frame->stream_name[frame->stream_count++] = 0;
    }
    const int64_t name_number = *name ? ct_interner_get(&frame->stream_names, name, &is_new) : 0;
    if (frame->stream_name[number - 1] == name_number)
        return true;
    const struct ct_object_name head = { .role = CT_ROLE_stream,
                                         .text_bytes =
                                             (uint32_t)strnlen(name, CT_STRING_MAX - sizeof(head)) + 1 };
    frame->stream_name[number - 1] = name_number;
    return note(frame, call, CT_KIND_NAME, stream, &head, sizeof(head), name);
}

/* Sets *number to the string ID of a kernel's name, or to 0 if the name is empty. Returns false if out of
 * memory. */
static bool name_kernel(struct ct_json_frame *frame, const struct ct_json_call *call, const char *kernel,
                        int64_t *number)
{
    char process[24];
    bool is_new = false;
    snprintf(process, sizeof(process), "%lld", (long long)call->body.segment_id);
    *number = *kernel ? number_of(&frame->kernels, process, kernel, &is_new) : 0;
    return (!*kernel || *number != 0) &&
           (!is_new || note(frame, call, CT_KIND_STRING, *number, "", 0, kernel));
}

static bool fill_launch(struct ct_json_frame *frame, const struct ct_json_line *line,
                        struct ct_json_call *call)
{
    const json_t *details = line->details;
    int64_t number;
    if (!name_kernel(frame, call, ct_json_text(details, "kernel", ""), &number))
        return false;
    const struct ct_launch launch = {
        .kernel = (uint32_t)number,
        .grid = { small(details, "grid_x"), small(details, "grid_y"), small(details, "grid_z") },
        .block = { small(details, "block_x"), small(details, "block_y"), small(details, "block_z") },
        .shared_bytes = small(details, "shared_bytes"),
    };
    call->body.kind = CT_KIND_LAUNCH;
    call->body.value = (uint64_t)ct_json_integer(details, "stream", 0);
    memcpy(call->payload, &launch, call->payload_bytes = sizeof(launch));
    return name_stream(frame, line, call, (int64_t)call->body.value);
}

static bool fill_graph(struct ct_json_frame *frame, const struct ct_json_line *line,
                       struct ct_json_call *call)
{
    const struct ct_graph_launch graph = { .exec = (uint64_t)ct_json_integer(line->details, "graph_exec", 0),
                                           .kernel_nodes = small(line->details, "kernel_nodes") };
    call->body.kind = CT_KIND_GRAPH;
    call->body.value = (uint64_t)ct_json_integer(line->details, "stream", 0);
    if (!json_object_get(line->details, "kernel_nodes"))
        call->body.flags |= CT_FLAG_UNKNOWN;
    memcpy(call->payload, &graph, call->payload_bytes = sizeof(graph));
    return name_stream(frame, line, call, (int64_t)call->body.value);
}

static bool fill_transfer(struct ct_json_frame *frame, const struct ct_json_line *line,
                          struct ct_json_call *call)
{
    const bool is_set = strcmp(ct_json_text(line->details, "category", ""), "set") == 0;
    struct ct_transfer transfer = {
        .stream = (uint64_t)ct_json_integer(line->details, "stream", 0),
        .source = (uint64_t)ct_json_integer(line->details, "source", 0),
        .destination = (uint64_t)ct_json_integer(line->details, is_set ? "address" : "destination", 0),
        .transfer = is_set ? CT_TRANSFER_SET : CT_TRANSFER_UNKNOWN,
        .async = is_one(line->details, "async"),
    };
    const char *kind = ct_json_text(line->details, "kind", "");
    for (uint8_t k = 0; k < CT_TRANSFER_COUNT; k++) {
        if (strcmp(kind, ct_transfer_names[k]) == 0)
            transfer.transfer = k;
    }
    const int64_t bytes = ct_json_integer(line->details, "bytes", 0);
    call->body.kind = CT_KIND_TRANSFER;
    call->body.value = bytes > 0 ? (uint64_t)bytes : 0;
    memcpy(call->payload, &transfer, call->payload_bytes = sizeof(transfer));
    return name_stream(frame, line, call, (int64_t)transfer.stream);
}

static bool fill_range(struct ct_json_frame *frame, const struct ct_json_line *line,
                       struct ct_json_call *call)
{
    (void)frame;
    const json_t *category = json_object_get(line->details, "range_category");
    const json_t *const value[] = { json_object_get(line->details, "message"),
                                    json_object_get(line->details, "domain"), category };
    struct ct_range range = { .category = small(line->details, "range_category") };
    uint32_t *const bytes[] = { &range.message_bytes, &range.domain_bytes, &range.category_bytes };
    size_t at = sizeof(range);
    for (int i = 0; i < 3; i++) {
        const size_t room = sizeof(range) + RANGE_TEXT_BYTES - at;
        const size_t length = json_is_string(value[i]) ? strnlen(json_string_value(value[i]), room - 1) : 0;
        if (!json_is_string(value[i]) || room <= 1)
            continue;
        memcpy(call->payload + at, json_string_value(value[i]), length);
        call->payload[at + length] = '\0';
        *bytes[i] = (uint32_t)length + 1;
        at += length + 1;
    }
    call->body.kind = CT_KIND_RANGE;
    call->body.value = 0;
    memcpy(call->payload, &range, sizeof(range));
    call->payload_bytes = at;
    return true;
}

/* Keeps the fields of a call if all their names are valid. Omits all fields after the first CT_FIELDS_MAX. */
static bool fill_fields(struct ct_json_frame *frame, const struct ct_json_line *line,
                        struct ct_json_call *call)
{
    (void)frame;
    struct ct_field field[CT_FIELDS_MAX];
    uint32_t count = 0;
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(line->details, "fields"), name, value)
    {
        if (count == CT_FIELDS_MAX)
            break;
        field[count++] =
            (struct ct_field){ .name = name,
                               .text = json_string_value(value),
                               .value = (uint64_t)json_integer_value(value),
                               .type = json_is_integer(value) ? CT_FIELD_SIGNED : CT_FIELD_TEXT };
    }
    call->body.kind = CT_KIND_FIELDS;
    call->body.value = 0;
    call->payload_bytes = ct_fields_write(call->payload, field, count);
    return true;
}

static bool fill_plain(struct ct_json_frame *frame, const struct ct_json_line *line,
                       struct ct_json_call *call)
{
    (void)frame;
    call->body.kind = CT_KIND_CALL;
    const int64_t bytes = ct_json_integer(line->details, "bytes", -1);
    if (bytes >= 0) {
        call->body.flags |= CT_FLAG_BYTES;
        call->body.value = (uint64_t)bytes;
    }
    return true;
}

static uint8_t role_of(const char *name)
{
    static const char *const roles[] = {
#define ROLE(name) [CT_ROLE_##name] = #name,
#include "role.def"
#undef ROLE
    };
    for (uint8_t role = 1; role < CT_ROLE_COUNT; role++) {
        if (strcmp(roles[role], name) == 0)
            return role;
    }
    return CT_ROLE_none;
}

/* Keeps the first CT_OBJECTS_MAX objects whose roles are known. */
static bool fill_objects(struct ct_json_frame *frame, const struct ct_json_line *line,
                         struct ct_json_call *call)
{
    struct ct_objects objects = { .role = { CT_ROLE_none } };
    uint32_t count = 0;
    const json_t *array = json_object_get(line->details, "objects");
    fill_plain(frame, line, call);
    for (size_t i = 0; i < json_array_size(array) && count < CT_OBJECTS_MAX; i++) {
        void *first = json_object_iter(json_array_get(array, i));
        const uint8_t role = first ? role_of(json_object_iter_key(first)) : CT_ROLE_none;
        if (role == CT_ROLE_none)
            continue;
        const json_t *value = json_object_iter_value(first);
        int64_t handle = json_integer_value(value);
        if (role == CT_ROLE_kernel &&
            !name_kernel(frame, call, json_is_string(value) ? json_string_value(value) : "", &handle))
            return false;
        objects.role[count] = role;
        objects.handle[count++] = (uint64_t)handle;
    }
    call->body.kind = CT_KIND_OBJECTS;
    memcpy(call->payload, &objects, call->payload_bytes = sizeof(objects));
    return true;
}

/* A call's kind is determined by its layer or by a member of its details. */
static const struct {
    const char *member, *layer;
    bool (*fill)(struct ct_json_frame *frame, const struct ct_json_line *line, struct ct_json_call *call);
} kinds[] = {
    { NULL, "nvtx", fill_range },       { NULL, "hook", fill_fields },    { "grid_x", NULL, fill_launch },
    { "graph_exec", NULL, fill_graph }, { "async", NULL, fill_transfer }, { "fields", NULL, fill_fields },
    { "objects", NULL, fill_objects },  { NULL, NULL, fill_plain },
};

bool ct_json_call_fill(struct ct_json_frame *frame, const struct ct_json_line *line,
                       struct ct_json_call *call)
{
    uint8_t payload[sizeof(struct ct_range) + RANGE_TEXT_BYTES];
    const uint32_t depth = small(line->details, "depth");
    call->payload = payload; /* until it is filled in */
    call->body.depth = (uint8_t)(depth < CT_SPAN_DEPTH_MAX ? depth : CT_SPAN_DEPTH_MAX);
    call->body.flags = is_one(line->details, "captured") ? CT_FLAG_CAPTURED : 0;
    size_t kind = 0;
    while ((kinds[kind].member && !json_object_get(line->details, kinds[kind].member)) ||
           (kinds[kind].layer && strcmp(line->layer, kinds[kind].layer) != 0))
        kind++;
    const bool good = name_function(frame, line, &call->body) && kinds[kind].fill(frame, line, call);
    call->payload = good ? malloc(call->payload_bytes + 1) : NULL;
    if (call->payload)
        memcpy(call->payload, payload, call->payload_bytes);
    return call->payload != NULL;
}
