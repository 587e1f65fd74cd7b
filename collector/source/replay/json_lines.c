#include "json_lines.h"

#include "intern.h"
#include "record.h"
#include "role.h"
#include "text_numbers.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LINES_OF_FRAME = 8192,
    OFFSET_LINES = 16384,  /* of the beginning, among which one tells of a return */
    BEGUN_MAX = 16384,     /* calls of a thread that have begun */
    FIRST_NS = 1000000000, /* where the clock of lines of other programs begins */
    RANGE_TEXT_BYTES = (CT_SLOTS_MAX - 2) * CT_SLOT_BYTES, /* all texts of a range */
};

#define MOMENT_MAX_NS (INT64_C(1) << 62)

/* A call that has begun. */
struct begun {
    int64_t op_id;
    struct ct_dump_call body; /* end_ns: when it began, by ts */
    uint8_t *payload;
    size_t payload_bytes;
};

struct thread {
    struct begun *begun; /* the innermost is the last */
    size_t count, room;
};

struct process {
    int64_t last_ns; /* its latest return, or the beginning of its first call */
    bool is_open;    /* a call has not returned */
};

struct ct_json_lines {
    FILE *file;
    char *text; /* the line */
    uint64_t number;
    const char *problem;
    struct ct_dump_buffer frame;
    struct ct_intern processes, threads, streams;
    struct ct_texts functions, kernels, stream_names;
    struct thread *thread; /* by number less 1 */
    size_t thread_count, thread_room;
    struct process *process; /* by number less 1 */
    size_t process_count, process_room;
    int64_t *stream_name; /* of each stream, by number less 1: its name's number; 0: none */
    size_t stream_count, stream_room;
    int64_t offset_ns; /* to be added to ts */
    int64_t last_ns;   /* the latest return */
    bool ended;        /* what is behind the last line is told */
};

/* What a line says, beside its details. */
struct line {
    const json_t *details; /* NULL for none */
    const char *name, *layer;
    int64_t op_id, pid, tid;
    int64_t at_ns; /* ts */
    bool is_begin;
};

/* ---- values ---- */

static bool fail(struct ct_json_lines *lines, const char *problem)
{
    lines->problem = problem;
    return false;
}

static bool fail_memory(struct ct_json_lines *lines)
{
    return fail(lines, "there is no memory for it");
}

static int64_t integer(const json_t *object, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

/* Returns 0 for what is none, or out of range. */
static uint32_t small(const json_t *object, const char *name)
{
    const int64_t value = integer(object, name, 0);
    return value >= 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static const char *text(const json_t *object, const char *name, const char *otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? json_string_value(value) : otherwise;
}

static bool is_one(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_true(value) || (json_is_integer(value) && json_integer_value(value) != 0);
}

/* Makes room for one more; false without memory. */
static bool make_room(void **array, size_t count, size_t *room, size_t bytes)
{
    if (count < *room)
        return true;
    const size_t wanted = *room ? *room * 2 : 16;
    void *grown = realloc(*array, wanted * bytes);
    if (!grown)
        return false;
    *array = grown;
    *room = wanted;
    return true;
}

/* Returns the number of a text of two parts; 0 without memory. The byte between them is in no first part. */
static int64_t number_of(struct ct_texts *texts, const char *first, const char *second, bool *is_new)
{
    char *whole;
    if (asprintf(&whole, "%s\x1f%s", first, second) < 0)
        return 0;
    const int64_t number = ct_texts_get(texts, whole, is_new);
    free(whole);
    return number;
}

/* ---- processes, threads and functions ---- */

static bool tell_process(struct ct_json_lines *lines, int64_t pid, int64_t process_id, int64_t at_ns)
{
    char segment[64];
    snprintf(segment, sizeof(segment), "json-lines-%lld", (long long)pid);
    const struct ct_dump_process body = {
        .process_id = process_id,
        .segment_id = process_id,
        .started_ns = (uint64_t)at_ns,
        .pid = (int32_t)pid,
        .uid = geteuid(),
    };
    const char *const texts[] = { "", "", segment };
    if (!make_room((void **)&lines->process, lines->process_count, &lines->process_room,
                   sizeof(*lines->process)))
        return false;
    lines->process[lines->process_count++] = (struct process){ .last_ns = at_ns };
    return ct_dump_add_texts(&lines->frame, CT_DUMP_PROCESS, &body, sizeof(body), 3, texts);
}

/* Returns the number of the process, which is that of its segment; 0 without memory. */
static int64_t process_of(struct ct_json_lines *lines, int64_t pid, int64_t at_ns)
{
    bool is_new = false;
    const int64_t number = ct_intern_get(&lines->processes, &pid, &is_new);
    return number == 0 || !is_new || tell_process(lines, pid, number, at_ns) ? number : 0;
}

static struct thread *add_thread(struct ct_json_lines *lines, const struct line *line, int64_t segment_id,
                                 int64_t thread_id)
{
    const struct ct_dump_thread body = { segment_id, thread_id, (uint64_t)line->tid };
    if (!make_room((void **)&lines->thread, lines->thread_count, &lines->thread_room,
                   sizeof(*lines->thread)) ||
        !ct_dump_add_texts(&lines->frame, CT_DUMP_THREAD, &body, sizeof(body), 1,
                           (const char *const[]){ "" }))
        return NULL;
    struct thread *thread = &lines->thread[lines->thread_count++];
    *thread = (struct thread){ 0 };
    return thread;
}

static struct thread *thread_of(struct ct_json_lines *lines, const struct line *line,
                                struct ct_dump_call *body)
{
    bool is_new = false;
    /* The zero of ts is when the first process began. */
    body->segment_id =
        process_of(lines, line->pid, lines->offset_ns + (lines->process_count > 0 ? line->at_ns : 0));
    body->thread_id = body->segment_id
                          ? ct_intern_get(&lines->threads, (const int64_t[]){ line->pid, line->tid }, &is_new)
                          : 0;
    if (body->thread_id == 0)
        return NULL;
    return is_new ? add_thread(lines, line, body->segment_id, body->thread_id)
                  : &lines->thread[body->thread_id - 1];
}

static bool name_function(struct ct_json_lines *lines, const struct line *line, struct ct_dump_call *body)
{
    bool is_new = false;
    const char *category = text(line->details, "category", "");
    body->function_id = number_of(&lines->functions, line->layer, line->name, &is_new);
    const struct ct_dump_function function = { body->function_id };
    const char *const texts[] = { line->layer, line->name, category };
    return body->function_id != 0 && (!is_new || ct_dump_add_texts(&lines->frame, CT_DUMP_FUNCTION, &function,
                                                                   sizeof(function), 3, texts));
}

/* ---- details ---- */

/* Adds what is no call: what a number in a call stands for. */
static bool note(struct ct_json_lines *lines, const struct begun *call, enum ct_kind kind, int64_t value,
                 const void *head, size_t head_bytes, const char *name)
{
    const size_t bytes = strnlen(name, CT_STRING_MAX - head_bytes);
    struct ct_dump_call body = call->body;
    body.function_id = 0;
    body.kind = (uint8_t)kind;
    body.value = (uint64_t)value;
    body.flags = 0;
    uint8_t *to = ct_dump_add(&lines->frame, CT_DUMP_NOTE, &body, sizeof(body), head_bytes + bytes + 1);
    if (!to)
        return false;
    memcpy(to, head, head_bytes);
    memcpy(to + head_bytes, name, bytes);
    to[head_bytes + bytes] = '\0';
    return true;
}

/* Names a stream where it has another name than it had, or none any more. */
static bool name_stream(struct ct_json_lines *lines, const struct line *line, const struct begun *call,
                        int64_t stream)
{
    const char *name = text(line->details, "stream_name", "");
    bool is_new = false;
    const int64_t key[] = { call->body.segment_id, stream };
    if (!*name && ct_intern_find(&lines->streams, key) == 0)
        return true;
    const int64_t number = ct_intern_get(&lines->streams, key, &is_new);
    if (number == 0)
        return false;
    if (is_new) {
        if (!make_room((void **)&lines->stream_name, lines->stream_count, &lines->stream_room,
                       sizeof(*lines->stream_name)))
            return false;
        lines->stream_name[lines->stream_count++] = 0;
    }
    const int64_t name_number = *name ? ct_texts_get(&lines->stream_names, name, &is_new) : 0;
    if (lines->stream_name[number - 1] == name_number)
        return true;
    const struct ct_object_name head = { .role = CT_ROLE_stream,
                                         .text_bytes =
                                             (uint32_t)strnlen(name, CT_STRING_MAX - sizeof(head)) + 1 };
    lines->stream_name[number - 1] = name_number;
    return note(lines, call, CT_KIND_NAME, stream, &head, sizeof(head), name);
}

static bool fill_launch(struct ct_json_lines *lines, const struct line *line, struct begun *call)
{
    const json_t *details = line->details;
    const char *kernel = text(details, "kernel", "");
    char process[24];
    bool is_new = false;
    snprintf(process, sizeof(process), "%lld", (long long)line->pid);
    const int64_t number = *kernel ? number_of(&lines->kernels, process, kernel, &is_new) : 0;
    if ((*kernel && number == 0) || (is_new && !note(lines, call, CT_KIND_STRING, number, "", 0, kernel)))
        return false;
    const struct ct_launch launch = {
        .kernel = (uint32_t)number,
        .grid = { small(details, "grid_x"), small(details, "grid_y"), small(details, "grid_z") },
        .block = { small(details, "block_x"), small(details, "block_y"), small(details, "block_z") },
        .shared_bytes = small(details, "shared_bytes"),
    };
    call->body.kind = CT_KIND_LAUNCH;
    call->body.value = (uint64_t)integer(details, "stream", 0);
    memcpy(call->payload, &launch, call->payload_bytes = sizeof(launch));
    return name_stream(lines, line, call, (int64_t)call->body.value);
}

static bool fill_graph(struct ct_json_lines *lines, const struct line *line, struct begun *call)
{
    const struct ct_graph_launch graph = { .exec = (uint64_t)integer(line->details, "graph_exec", 0),
                                           .kernel_nodes = small(line->details, "kernel_nodes") };
    call->body.kind = CT_KIND_GRAPH;
    call->body.value = (uint64_t)integer(line->details, "stream", 0);
    if (!json_object_get(line->details, "kernel_nodes"))
        call->body.flags |= CT_FLAG_UNKNOWN;
    memcpy(call->payload, &graph, call->payload_bytes = sizeof(graph));
    return name_stream(lines, line, call, (int64_t)call->body.value);
}

static bool fill_transfer(struct ct_json_lines *lines, const struct line *line, struct begun *call)
{
    static const char *const kinds[CT_TRANSFER_COUNT] = {
        [CT_TRANSFER_HTOD] = "HtoD", [CT_TRANSFER_DTOH] = "DtoH", [CT_TRANSFER_DTOD] = "DtoD",
        [CT_TRANSFER_HTOH] = "HtoH", [CT_TRANSFER_PTOP] = "PtoP", [CT_TRANSFER_SET] = "set",
    };
    struct ct_transfer transfer = { .stream = (uint64_t)integer(line->details, "stream", 0),
                                    .async = is_one(line->details, "async") };
    const char *kind = text(line->details, "kind", "");
    for (uint8_t k = 0; k < CT_TRANSFER_COUNT; k++) {
        if (kinds[k] && strcmp(kind, kinds[k]) == 0)
            transfer.transfer = k;
    }
    const int64_t bytes = integer(line->details, "bytes", 0);
    call->body.kind = CT_KIND_TRANSFER;
    call->body.value = bytes > 0 ? (uint64_t)bytes : 0;
    memcpy(call->payload, &transfer, call->payload_bytes = sizeof(transfer));
    return name_stream(lines, line, call, (int64_t)transfer.stream);
}

static bool fill_range(struct ct_json_lines *lines, const struct line *line, struct begun *call)
{
    (void)lines;
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

static bool fill_plain(struct ct_json_lines *lines, const struct line *line, struct begun *call)
{
    (void)lines;
    call->body.kind = CT_KIND_CALL;
    const int64_t bytes = integer(line->details, "bytes", -1);
    if (bytes >= 0) {
        call->body.flags |= CT_FLAG_BYTES;
        call->body.value = (uint64_t)bytes;
    }
    return true;
}

/* What a call was is told by a member that its details have, or by its layer. */
static const struct {
    const char *member, *layer;
    bool (*fill)(struct ct_json_lines *lines, const struct line *line, struct begun *call);
} kinds[] = {
    { NULL, "nvtx", fill_range },     { "grid_x", NULL, fill_launch }, { "graph_exec", NULL, fill_graph },
    { "async", NULL, fill_transfer }, { NULL, NULL, fill_plain },
};

/* Fills in all that is known when a call begins. */
static bool fill(struct ct_json_lines *lines, const struct line *line, struct begun *call)
{
    uint8_t payload[sizeof(struct ct_range) + RANGE_TEXT_BYTES];
    const uint32_t depth = small(line->details, "depth");
    call->op_id = line->op_id;
    call->payload = payload; /* until it is filled in */
    call->body.end_ns = (uint64_t)(lines->offset_ns + line->at_ns);
    call->body.depth = (uint8_t)(depth < CT_SPAN_DEPTH_MAX ? depth : CT_SPAN_DEPTH_MAX);
    call->body.flags = is_one(line->details, "captured") ? CT_FLAG_CAPTURED : 0;
    size_t kind = 0;
    while ((kinds[kind].member && !json_object_get(line->details, kinds[kind].member)) ||
           (kinds[kind].layer && strcmp(line->layer, kinds[kind].layer) != 0))
        kind++;
    if (!name_function(lines, line, &call->body) || !kinds[kind].fill(lines, line, call))
        return false;
    if (!(call->payload = malloc(call->payload_bytes + 1)))
        return false;
    memcpy(call->payload, payload, call->payload_bytes);
    return true;
}

/* ---- lines ---- */

static bool push(struct thread *thread, const struct begun *call)
{
    if (!make_room((void **)&thread->begun, thread->count, &thread->room, sizeof(*thread->begun)))
        return false;
    thread->begun[thread->count++] = *call;
    return true;
}

static bool begin(struct ct_json_lines *lines, const struct line *line)
{
    struct begun call = { 0 };
    struct thread *thread = thread_of(lines, line, &call.body);
    if (thread && thread->count == BEGUN_MAX)
        return fail(lines, "its thread has begun 16,384 calls that did not return");
    if (!thread || !fill(lines, line, &call))
        return fail_memory(lines);
    if (push(thread, &call))
        return true;
    free(call.payload);
    return fail_memory(lines);
}

/* Takes the call out of those that have begun; the innermost is looked at first. */
static bool take(struct thread *thread, int64_t op_id, struct begun *call)
{
    for (size_t i = thread->count; i-- > 0;) {
        if (thread->begun[i].op_id != op_id)
            continue;
        *call = thread->begun[i];
        memmove(thread->begun + i, thread->begun + i + 1, (--thread->count - i) * sizeof(*call));
        return true;
    }
    return false;
}

/* A line of our own says exactly how long the call took, and its op_id is when it returned. */
static bool set_times(struct ct_json_lines *lines, const struct line *line, bool has_begun,
                      struct begun *call)
{
    const int64_t duration_ns = integer(line->details, "duration_ns", -1);
    if (duration_ns >= 0) {
        if (line->op_id <= 0 || line->op_id > MOMENT_MAX_NS || duration_ns > line->op_id)
            return fail(lines, "its op_id is no moment at which it can have returned");
        call->body.end_ns = (uint64_t)line->op_id;
        call->body.duration_ns = (uint64_t)duration_ns;
        return true;
    }
    const int64_t end_ns = lines->offset_ns + line->at_ns;
    const int64_t start_ns = has_begun ? (int64_t)call->body.end_ns : end_ns;
    if (end_ns < start_ns)
        return fail(lines, "it returns before it began");
    call->body.end_ns = (uint64_t)end_ns;
    call->body.duration_ns = (uint64_t)(end_ns - start_ns);
    return true;
}

static bool end(struct ct_json_lines *lines, const struct line *line)
{
    struct begun call = { 0 };
    struct ct_dump_call place = { 0 };
    struct thread *thread = thread_of(lines, line, &place);
    if (!thread)
        return fail_memory(lines);
    const bool has_begun = take(thread, line->op_id, &call);
    if (!has_begun) {
        call.body = place;
        if (!fill(lines, line, &call))
            return fail_memory(lines);
    }
    call.body.thread_id = place.thread_id;
    call.body.status = (int32_t)integer(line->details, "status", 0);
    bool good = set_times(lines, line, has_begun, &call);
    if (good) {
        uint8_t *payload =
            ct_dump_add(&lines->frame, CT_DUMP_CALL, &call.body, sizeof(call.body), call.payload_bytes);
        if (payload)
            memcpy(payload, call.payload, call.payload_bytes);
        good = payload ? true : fail_memory(lines);
    }
    struct process *process = &lines->process[place.segment_id - 1];
    if ((int64_t)call.body.end_ns > process->last_ns)
        process->last_ns = (int64_t)call.body.end_ns;
    if (process->last_ns > lines->last_ns)
        lines->last_ns = process->last_ns;
    free(call.payload);
    return good;
}

static const char *layer_of(const char *name)
{
    if (strncmp(name, "cuda", 4) == 0)
        return "runtime";
    return strncmp(name, "nvtx", 4) == 0 ? "nvtx" : "driver";
}

static bool read_line(struct ct_json_lines *lines, const json_t *object)
{
    const char *phase = text(object, "phase", "");
    const json_t *ts = json_object_get(object, "ts"), *op_id = json_object_get(object, "op_id");
    struct line line = { .name = text(object, "name", ""), .details = json_object_get(object, "details") };
    if (!json_is_object(object) || !json_is_number(ts) || !json_is_integer(op_id) || !*line.name)
        return fail(lines, "it has no ts, op_id, phase and name of a call");
    line.is_begin = strcmp(phase, "B") == 0;
    if (!line.is_begin && strcmp(phase, "E") != 0)
        return fail(lines, "its phase is neither B nor E");
    const double ns = json_number_value(ts) * 1e9;
    line.layer = text(object, "layer", layer_of(line.name));
    line.op_id = json_integer_value(op_id);
    line.pid = integer(object, "pid", 1);
    line.tid = integer(object, "tid", line.pid);
    if (line.pid < 0 || line.pid > INT32_MAX || line.tid < 0 || line.tid > UINT32_MAX)
        return fail(lines, "its pid or tid is none");
    if (!(ns >= 0 && ns < (double)(MOMENT_MAX_NS - lines->offset_ns)))
        return fail(lines, "its ts is no time of a trace");
    line.at_ns = (int64_t)(ns + 0.5);
    return line.is_begin ? begin(lines, &line) : end(lines, &line);
}

/* ---- the end ---- */

/* Tells of the calls that did not return, and that the other processes ended with their last call. */
static bool tell_end(struct ct_json_lines *lines)
{
    for (size_t t = 0; t < lines->thread_count; t++) {
        const struct thread *thread = &lines->thread[t];
        for (size_t i = 0; i < thread->count; i++) {
            const struct ct_dump_call *call = &thread->begun[i].body;
            const struct ct_dump_open body = { call->segment_id, call->thread_id, call->function_id,
                                               call->depth, call->end_ns };
            lines->process[call->segment_id - 1].is_open = true;
            if (!ct_dump_add(&lines->frame, CT_DUMP_OPEN, &body, sizeof(body), 0))
                return fail_memory(lines);
        }
    }
    for (size_t p = 0; p < lines->process_count; p++) {
        const struct ct_dump_end body = { (int64_t)p + 1, (uint64_t)lines->process[p].last_ns };
        if (!lines->process[p].is_open && !ct_dump_add_texts(&lines->frame, CT_DUMP_END, &body, sizeof(body),
                                                             1, (const char *const[]){ "exited" }))
            return fail_memory(lines);
    }
    return true;
}

/* Returns false at the end of the file, or with a problem. */
static bool next_line(struct ct_json_lines *lines)
{
    if (!fgets(lines->text, CT_JSON_LINE_BYTES, lines->file))
        return ferror(lines->file) ? fail(lines, "it cannot be read") : false;
    lines->number++;
    const size_t bytes = strlen(lines->text);
    if (bytes + 1 == CT_JSON_LINE_BYTES && lines->text[bytes - 1] != '\n')
        return fail(lines, "it is longer than 256 KiB");
    if (strspn(lines->text, " \t\r\n") == bytes && bytes > 0)
        return true;
    json_t *object = json_loadb(lines->text, bytes, JSON_DECODE_ANY, NULL);
    const bool good = object ? read_line(lines, object) : fail(lines, "it is no JSON, or cut short");
    json_decref(object);
    return good;
}

/* Finds what is to be added to ts: the first line of our own that tells of a return says it. */
static void find_offset(struct ct_json_lines *lines)
{
    int64_t duration_ns = -1;
    lines->offset_ns = FIRST_NS;
    for (int i = 0;
         i < OFFSET_LINES && duration_ns < 0 && fgets(lines->text, CT_JSON_LINE_BYTES, lines->file); i++) {
        json_t *object = json_loads(lines->text, 0, NULL);
        const int64_t op_id = integer(object, "op_id", 0);
        const double ns = json_number_value(json_object_get(object, "ts")) * 1e9;
        duration_ns = integer(json_object_get(object, "details"), "duration_ns", -1);
        if (duration_ns >= 0 && op_id > 0 && op_id <= MOMENT_MAX_NS && ns >= 0 && ns <= (double)op_id)
            lines->offset_ns = op_id - (int64_t)(ns + 0.5);
        json_decref(object);
    }
    rewind(lines->file);
}

const struct ct_dump_frame *ct_json_lines_next(struct ct_json_lines *lines, char *problem, size_t bytes)
{
    lines->frame.used = 0;
    bool more = !lines->ended;
    for (int i = 0; more && (i < LINES_OF_FRAME || lines->frame.used == 0); i++)
        more = next_line(lines);
    if (!more && !lines->ended) {
        lines->ended = true;
        tell_end(lines);
    }
    if (lines->problem)
        snprintf(problem, bytes, "ends at line %llu: %s", (unsigned long long)lines->number, lines->problem);
    return lines->frame.used ? ct_dump_seal(&lines->frame, (uint64_t)lines->last_ns) : NULL;
}

struct ct_json_lines *ct_json_lines_open(int fd)
{
    struct ct_json_lines *lines = calloc(1, sizeof(*lines));
    if (!lines || !(lines->text = malloc(CT_JSON_LINE_BYTES)) || !(lines->file = fdopen(fd, "re"))) {
        free(lines ? lines->text : NULL);
        free(lines);
        return NULL;
    }
    find_offset(lines);
    ct_intern_init(&lines->processes, sizeof(int64_t), SIZE_MAX, 1);
    ct_intern_init(&lines->threads, 2 * sizeof(int64_t), SIZE_MAX, 1);
    ct_intern_init(&lines->streams, 2 * sizeof(int64_t), SIZE_MAX, 1);
    lines->functions.next = lines->kernels.next = lines->stream_names.next = 1;
    return lines;
}

void ct_json_lines_close(struct ct_json_lines *lines)
{
    if (!lines)
        return;
    for (size_t t = 0; t < lines->thread_count; t++) {
        for (size_t i = 0; i < lines->thread[t].count; i++)
            free(lines->thread[t].begun[i].payload);
        free(lines->thread[t].begun);
    }
    ct_intern_finish(&lines->processes);
    ct_intern_finish(&lines->threads);
    ct_intern_finish(&lines->streams);
    ct_texts_finish(&lines->functions);
    ct_texts_finish(&lines->kernels);
    ct_texts_finish(&lines->stream_names);
    ct_dump_buffer_finish(&lines->frame);
    free(lines->process);
    free(lines->thread);
    free(lines->stream_name);
    free(lines->text);
    fclose(lines->file);
    free(lines);
}
