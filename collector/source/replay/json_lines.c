#include "json_lines.h"

#include "json_call.h"
#include "room.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LINES_OF_FRAME = 8192,
    OFFSET_LINES = 16384,  /* how many lines at the beginning are searched for a return */
    BEGUN_MAX = 16384,     /* maximum number of calls that a thread may have begun */
    FIRST_NS = 1000000000, /* start of the clock for other programs' lines */
    PROBLEM_BYTES = 256,
};

struct thread {
    struct ct_json_call *begun; /* innermost last */
    size_t count, room;
};

struct process {
    int64_t last_ns; /* the latest return of the process, or the start of its first call */
    bool is_open;    /* a call has not returned */
};

struct ct_json_lines {
    FILE *file;
    char *text; /* the current line */
    uint64_t number;
    char problem[PROBLEM_BYTES]; /* empty: none */
    bool is_converted;
    struct ct_json_frame frame;
    struct ct_intern processes, threads;
    struct thread *thread; /* by number less 1 */
    size_t thread_count, thread_room;
    struct process *process; /* by number less 1 */
    size_t process_count, process_room;
    int64_t offset_ns;   /* added to ts */
    int64_t last_ns;     /* the latest return */
    int64_t first_op_id; /* op_id of the first line that cudatrace wrote for a return; 0: none yet */
    bool ended;          /* the events that follow the last line were added */
};

static bool fail(struct ct_json_lines *lines, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Records a problem. Always returns false. */
static bool fail(struct ct_json_lines *lines, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(lines->problem, sizeof(lines->problem), format, arguments);
    va_end(arguments);
    return false;
}

static bool fail_memory(struct ct_json_lines *lines)
{
    return fail(lines, "out of memory");
}

/* ---- processes and threads ---- */

static bool tell_process(struct ct_json_lines *lines, int64_t pid, int64_t process_id, int64_t at_ns)
{
    char segment[64];
    snprintf(segment, sizeof(segment), "json-lines-%lld", (long long)pid);
    const struct ct_dump_process body = {
        .process_id = process_id,
        .segment_id = process_id,
        .is = { .started_ns = (uint64_t)at_ns, .pid = (int32_t)pid, .uid = geteuid() },
    };
    const char *const texts[] = { "", "", segment };
    if (!ct_make_room(&lines->process, lines->process_count, &lines->process_room, sizeof(*lines->process)))
        return false;
    lines->process[lines->process_count++] = (struct process){ .last_ns = at_ns };
    return ct_dump_add_texts(&lines->frame.events, CT_DUMP_PROCESS, &body, texts);
}

/* Returns the ID of the process, which is also the ID of its segment, or 0 if out of memory. */
static int64_t process_of(struct ct_json_lines *lines, int64_t pid, int64_t at_ns)
{
    bool is_new = false;
    const int64_t number = ct_intern_get(&lines->processes, &pid, &is_new);
    return number == 0 || !is_new || tell_process(lines, pid, number, at_ns) ? number : 0;
}

static struct thread *add_thread(struct ct_json_lines *lines, const struct ct_json_line *line,
                                 int64_t segment_id, int64_t thread_id)
{
    const struct ct_dump_thread body = { segment_id, thread_id, (uint64_t)line->tid };
    if (!ct_make_room(&lines->thread, lines->thread_count, &lines->thread_room, sizeof(*lines->thread)) ||
        !ct_dump_add_texts(&lines->frame.events, CT_DUMP_THREAD, &body, (const char *const[]){ "" }))
        return NULL;
    struct thread *thread = &lines->thread[lines->thread_count++];
    *thread = (struct thread){ 0 };
    return thread;
}

static struct thread *thread_of(struct ct_json_lines *lines, const struct ct_json_line *line,
                                struct ct_dump_call *body)
{
    bool is_new = false;
    /* `ts` is relative to the start of the first process. */
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

/* ---- lines ---- */

static bool fill(struct ct_json_lines *lines, const struct ct_json_line *line, struct ct_json_call *call)
{
    call->op_id = line->op_id;
    call->body.end_ns = (uint64_t)(lines->offset_ns + line->at_ns);
    return ct_json_call_fill(&lines->frame, line, call);
}

static bool push(struct thread *thread, const struct ct_json_call *call)
{
    if (!ct_make_room(&thread->begun, thread->count, &thread->room, sizeof(*thread->begun)))
        return false;
    thread->begun[thread->count++] = *call;
    return true;
}

static bool begin(struct ct_json_lines *lines, const struct ct_json_line *line)
{
    struct ct_json_call call = { 0 };
    struct thread *thread = thread_of(lines, line, &call.body);
    if (thread && thread->count == BEGUN_MAX)
        return fail(lines, "thread %lld of process %lld begins more than %d calls that do not return",
                    (long long)line->tid, (long long)line->pid, BEGUN_MAX);
    if (!thread || !fill(lines, line, &call))
        return fail_memory(lines);
    if (push(thread, &call))
        return true;
    free(call.payload);
    return fail_memory(lines);
}

/* Removes a call from the open calls, searching from the innermost call outwards. */
static bool take(struct thread *thread, int64_t op_id, struct ct_json_call *call)
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

/* Sets the times of a call. If cudatrace wrote the line, it has the exact duration, and the op_id is the
 * return time. */
static bool set_times(struct ct_json_lines *lines, const struct ct_json_line *line, bool has_begun,
                      struct ct_json_call *call)
{
    const int64_t duration_ns = ct_json_integer(line->details, "duration_ns", -1);
    if (duration_ns >= 0) {
        if (line->op_id <= 0 || line->op_id > (int64_t)CT_DUMP_MOMENT_MAX || duration_ns > line->op_id)
            return fail(lines,
                        "op_id is %lld and duration_ns is %lld: expected the time of the return, which is "
                        "not less than the duration",
                        (long long)line->op_id, (long long)duration_ns);
        if (line->op_id == lines->first_op_id)
            return fail(lines,
                        "the call with op_id %lld returned in an earlier line already: the file contains its "
                        "lines twice",
                        (long long)line->op_id);
        lines->first_op_id = lines->first_op_id ? lines->first_op_id : line->op_id;
        call->body.end_ns = (uint64_t)line->op_id;
        call->body.duration_ns = (uint64_t)duration_ns;
        return true;
    }
    const int64_t end_ns = lines->offset_ns + line->at_ns;
    const int64_t start_ns = has_begun ? (int64_t)call->body.end_ns : end_ns;
    if (end_ns < start_ns)
        return fail(lines, "the call with op_id %lld returns %lld ns before it began", (long long)line->op_id,
                    (long long)(start_ns - end_ns));
    call->body.end_ns = (uint64_t)end_ns;
    call->body.duration_ns = (uint64_t)(end_ns - start_ns);
    return true;
}

static bool end(struct ct_json_lines *lines, const struct ct_json_line *line)
{
    struct ct_json_call call = { 0 };
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
    call.body.status = (int32_t)ct_json_integer(line->details, "status", 0);
    bool good = set_times(lines, line, has_begun, &call);
    if (good) {
        uint8_t *payload = ct_dump_add(&lines->frame.events, CT_DUMP_CALL, &call.body, call.payload_bytes);
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

/* Reports that a member has an unexpected value, and names the expected value. Always returns false. */
static bool fail_member(struct ct_json_lines *lines, const json_t *object, const char *key,
                        const char *expected)
{
    const json_t *value = json_object_get(object, key);
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    fail(lines, "%s is %.60s: expected %s", key, text ? text : value ? "too large" : "missing", expected);
    free(text);
    return false;
}

static bool read_line(struct ct_json_lines *lines, const json_t *object)
{
    const char *phase = ct_json_text(object, "phase", "");
    const json_t *ts = json_object_get(object, "ts"), *op_id = json_object_get(object, "op_id");
    struct ct_json_line line = { .name = ct_json_text(object, "name", ""),
                                 .details = json_object_get(object, "details") };
    if (!json_is_object(object))
        return fail(lines, "expected an object with ts, op_id, phase and name");
    if (!json_is_number(ts))
        return fail_member(lines, object, "ts", "a number of seconds");
    if (!json_is_integer(op_id))
        return fail_member(lines, object, "op_id", "an integer");
    if (!*line.name)
        return fail_member(lines, object, "name", "the name of a function");
    line.is_begin = strcmp(phase, "B") == 0;
    if (!line.is_begin && strcmp(phase, "E") != 0)
        return fail_member(lines, object, "phase", "\"B\" or \"E\"");
    const double ns = json_number_value(ts) * 1e9;
    line.layer = ct_json_text(object, "layer", layer_of(line.name));
    line.op_id = json_integer_value(op_id);
    line.pid = ct_json_integer(object, "pid", 1);
    line.tid = ct_json_integer(object, "tid", line.pid);
    if (line.pid < 0 || line.pid > INT32_MAX)
        return fail_member(lines, object, "pid", "a process ID from 0 to 2147483647");
    if (line.tid < 0 || line.tid > UINT32_MAX)
        return fail_member(lines, object, "tid", "a thread ID from 0 to 4294967295");
    if (!(ns >= 0 && ns < (double)((int64_t)CT_DUMP_MOMENT_MAX - lines->offset_ns)))
        return fail_member(lines, object, "ts", "seconds since the beginning of the trace");
    line.at_ns = (int64_t)(ns + 0.5);
    return line.is_begin ? begin(lines, &line) : end(lines, &line);
}

/* ---- the end ---- */

/* Adds the calls that have not returned. If a process has no open calls, records that it ended when its last
 * call returned. */
static bool tell_end(struct ct_json_lines *lines)
{
    for (size_t t = 0; t < lines->thread_count; t++) {
        const struct thread *thread = &lines->thread[t];
        for (size_t i = 0; i < thread->count; i++) {
            const struct ct_dump_call *call = &thread->begun[i].body;
            const struct ct_open_facts body = { call->segment_id, call->thread_id, call->function_id,
                                                call->depth, call->end_ns };
            lines->process[call->segment_id - 1].is_open = true;
            if (!ct_dump_add(&lines->frame.events, CT_DUMP_OPEN, &body, 0))
                return fail_memory(lines);
        }
    }
    for (size_t p = 0; p < lines->process_count; p++) {
        const struct ct_end_facts body = { (int64_t)p + 1, (uint64_t)lines->process[p].last_ns };
        if (!lines->process[p].is_open &&
            !ct_dump_add_texts(&lines->frame.events, CT_DUMP_END, &body, (const char *const[]){ "exited" }))
            return fail_memory(lines);
    }
    return true;
}

/* Reads a line. Returns false at the end of the file or if there is a problem. */
static bool next_line(struct ct_json_lines *lines)
{
    if (!fgets(lines->text, CT_JSON_LINE_BYTES, lines->file))
        return ferror(lines->file) ? fail(lines, "%s", strerror(errno)) : false;
    lines->number++;
    const size_t bytes = strlen(lines->text);
    if (bytes + 1 == CT_JSON_LINE_BYTES && lines->text[bytes - 1] != '\n')
        return fail(lines, "the line is longer than %d KiB", CT_JSON_LINE_BYTES / 1024);
    if (strspn(lines->text, " \t\r\n") == bytes && bytes > 0)
        return true;
    json_error_t error;
    json_t *object = json_loadb(lines->text, bytes, JSON_DECODE_ANY, &error);
    const bool good = object ? read_line(lines, object)
                             : fail(lines, "the line is not JSON, or is truncated: %s", error.text);
    json_decref(object);
    return good;
}

/* Finds the offset to add to every `ts`, from the first line in which cudatrace reports that a call
 * returned. */
static void find_offset(struct ct_json_lines *lines, int64_t from)
{
    int64_t duration_ns = -1;
    lines->offset_ns = FIRST_NS;
    for (int i = 0;
         i < OFFSET_LINES && duration_ns < 0 && fgets(lines->text, CT_JSON_LINE_BYTES, lines->file); i++) {
        json_t *object = json_loads(lines->text, 0, NULL);
        const int64_t op_id = ct_json_integer(object, "op_id", 0);
        const double ns = json_number_value(json_object_get(object, "ts")) * 1e9;
        duration_ns = ct_json_integer(json_object_get(object, "details"), "duration_ns", -1);
        if (duration_ns >= 0 && op_id > 0 && op_id <= (int64_t)CT_DUMP_MOMENT_MAX && ns >= 0 &&
            ns <= (double)op_id)
            lines->offset_ns = op_id - (int64_t)(ns + 0.5);
        json_decref(object);
    }
    fseeko(lines->file, from, SEEK_SET);
}

const struct ct_dump_frame *ct_json_lines_next(struct ct_json_lines *lines, char *problem, size_t bytes)
{
    lines->frame.events.used = 0;
    bool more = !lines->ended;
    for (int i = 0; more && (i < LINES_OF_FRAME || lines->frame.events.used == 0); i++)
        more = next_line(lines);
    if (!more && !lines->ended) {
        lines->ended = true;
        tell_end(lines);
    }
    if (*lines->problem && lines->is_converted)
        snprintf(problem, bytes, "contains an event that cannot be stored: %s", lines->problem);
    else if (*lines->problem)
        snprintf(problem, bytes, "cannot be read at line %llu: %s", (unsigned long long)lines->number,
                 lines->problem);
    return lines->frame.events.used ? ct_dump_seal(&lines->frame.events, (uint64_t)lines->last_ns) : NULL;
}

struct ct_json_lines *ct_json_lines_open(int fd, int64_t from, bool is_converted)
{
    struct ct_json_lines *lines = calloc(1, sizeof(*lines));
    if (!lines || !(lines->text = malloc(CT_JSON_LINE_BYTES)) || !(lines->file = fdopen(fd, "re"))) {
        free(lines ? lines->text : NULL);
        free(lines);
        return NULL;
    }
    lines->is_converted = is_converted;
    fseeko(lines->file, from, SEEK_SET);
    find_offset(lines, from);
    ct_intern_init(&lines->processes, sizeof(int64_t), SIZE_MAX, 1);
    ct_intern_init(&lines->threads, 2 * sizeof(int64_t), SIZE_MAX, 1);
    ct_json_frame_init(&lines->frame);
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
    ct_json_frame_finish(&lines->frame);
    free(lines->process);
    free(lines->thread);
    free(lines->text);
    fclose(lines->file);
    free(lines);
}
