#include "json_lines.h"

#include "json_call.h"
#include "json_complete.h"
#include "payload.h"
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
    size_t room;
    uint64_t number;
    struct ct_dropped *dropped;
    const char *reason;          /* why the current line is dropped: a string literal */
    char why[PROBLEM_BYTES];     /* the same as a sentence */
    char problem[PROBLEM_BYTES]; /* why the file ends early; empty: it does not */
    bool is_converted;
    struct ct_json_frame frame;
    struct ct_interner processes, threads;
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

/* Ends the file. Always returns false. */
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

static bool drop(struct ct_json_lines *lines, const char *reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports why the current line cannot be stored. Always returns false. */
static bool drop(struct ct_json_lines *lines, const char *reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(lines->why, sizeof(lines->why), format, arguments);
    va_end(arguments);
    lines->reason = reason;
    return false;
}

/* ---- processes and threads ---- */

/* A process with a name instead of a PID, and a further instance, differ from other processes with the same
 * PID in `start_ticks`. */
static bool tell_process(struct ct_json_lines *lines, const struct ct_json_line *line, int64_t process_id,
                         int64_t at_ns)
{
    const char *name = ct_json_identity_name(line->process, INT32_MAX);
    const int64_t pid = ct_json_identity_number(line->process, INT32_MAX);
    const uint64_t hash = *name ? ct_json_identity_hash(line->process) >> 3 : 0;
    const uint64_t ticks = hash + (uint64_t)line->instance - 1;
    char segment[64], *command = strndup(name, 4096);
    snprintf(segment, sizeof(segment), ticks ? "json-lines-%lld-%llu" : "json-lines-%lld", (long long)pid,
             (unsigned long long)ticks);
    const struct ct_dump_process body = {
        .process_id = process_id,
        .segment_id = process_id,
        .is = { .start_ticks = ticks, .started_ns = (uint64_t)at_ns, .pid = (int32_t)pid, .uid = geteuid() },
    };
    const char *const texts[] = { "", command, segment };
    const bool good =
        command &&
        ct_make_room(&lines->process, lines->process_count, &lines->process_room, sizeof(*lines->process)) &&
        ct_dump_add_texts(&lines->frame.events, CT_DUMP_PROCESS, &body, texts);
    free(command);
    if (good)
        lines->process[lines->process_count++] = (struct process){ .last_ns = at_ns };
    return good;
}

/* Returns the ID of a process or thread. `of` is its instance or the ID of its process. Returns 0 if out of
 * memory, or if `is_new` is NULL and there is no ID yet. */
static int64_t number_of(struct ct_interner *identities, int64_t of, const char *identity, bool *is_new)
{
    char *key;
    if (asprintf(&key, "%lld %s", (long long)of, identity) < 0)
        return 0;
    const int64_t number =
        is_new ? ct_interner_get(identities, key, is_new) : ct_interner_find(identities, key);
    free(key);
    return number;
}

/* Returns the ID of the process, which is also the ID of its segment, or 0 if out of memory. */
static int64_t process_of(struct ct_json_lines *lines, const struct ct_json_line *line, int64_t at_ns)
{
    bool is_new = false;
    const int64_t number = number_of(&lines->processes, line->instance, line->process, &is_new);
    return number == 0 || !is_new || tell_process(lines, line, number, at_ns) ? number : 0;
}

static struct thread *add_thread(struct ct_json_lines *lines, const struct ct_json_line *line,
                                 int64_t segment_id, int64_t thread_id)
{
    const char *name = ct_json_identity_name(line->thread, UINT32_MAX);
    const struct ct_dump_thread body = { segment_id, thread_id,
                                         (uint64_t)ct_json_identity_number(line->thread, UINT32_MAX) };
    /* A trace that continues in its next file keeps the threads that have lanes (schema/rollover.sql). */
    const struct ct_lane_facts lane = { segment_id, thread_id, .lane = (uint64_t)thread_id };
    char comm[sizeof(struct ct_thread_name)];
    snprintf(comm, sizeof(comm), "%.*s", (int)sizeof(comm) - 1, name);
    if (!ct_make_room(&lines->thread, lines->thread_count, &lines->thread_room, sizeof(*lines->thread)) ||
        !ct_dump_add_texts(&lines->frame.events, CT_DUMP_THREAD, &body, (const char *const[]){ comm }) ||
        !ct_dump_add(&lines->frame.events, CT_DUMP_LANE, &lane, 0))
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
        process_of(lines, line, lines->offset_ns + (lines->process_count > 0 ? line->at_ns : 0));
    if (body->segment_id != 0)
        body->thread_id = number_of(&lines->threads, body->segment_id, line->thread, &is_new);
    if (body->segment_id == 0 || body->thread_id == 0)
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
        return drop(lines, "open",
                    "thread %.40s of process %.40s begins more than %d calls that do not return",
                    line->thread, line->process, BEGUN_MAX);
    if (!thread || !fill(lines, line, &call))
        return fail_memory(lines);
    if (push(thread, &call))
        return true;
    free(call.payload);
    return fail_memory(lines);
}

/* Returns whether a call has begun and has not returned. */
static bool has_begun(struct ct_json_lines *lines, const struct ct_json_line *line)
{
    const int64_t process =
        number_of((struct ct_interner *)&lines->processes, line->instance, line->process, NULL);
    const int64_t number = number_of(&lines->threads, process, line->thread, NULL);
    const struct thread *thread = number > 0 ? &lines->thread[number - 1] : NULL;
    size_t i = thread ? thread->count : 0;
    while (i > 0 && thread->begun[i - 1].op_id != line->op_id)
        i--;
    return i > 0;
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
static bool set_times(struct ct_json_lines *lines, const struct ct_json_line *line, struct ct_json_call *call)
{
    const int64_t duration_ns = ct_json_integer(line->details, "duration_ns", -1);
    if (duration_ns >= 0) {
        if (line->op_id <= 0 || line->op_id > (int64_t)CT_DUMP_MOMENT_MAX || duration_ns > line->op_id)
            return drop(lines, "op_id",
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
    const int64_t start_ns = (int64_t)call->body.end_ns;
    if (end_ns < start_ns)
        return drop(lines, "order", "the call with op_id %lld returns %lld ns before it began",
                    (long long)line->op_id, (long long)(start_ns - end_ns));
    call->body.end_ns = (uint64_t)end_ns;
    call->body.duration_ns = (uint64_t)(end_ns - start_ns);
    return true;
}

/* Returns the call's status, or 0 if it is missing or out of range. */
static int32_t status_of(const struct ct_json_line *line)
{
    const int64_t status = ct_json_integer(line->details, "status", 0);
    return status >= INT32_MIN && status <= INT32_MAX ? (int32_t)status : 0;
}

static bool end(struct ct_json_lines *lines, const struct ct_json_line *line)
{
    struct ct_json_call call = { 0 };
    struct ct_dump_call place = { 0 };
    /* Only cudatrace's lines have a duration, so that a window of them may begin within a call. */
    if (ct_json_integer(line->details, "duration_ns", -1) < 0 && !has_begun(lines, line))
        return drop(lines, "E", "the call with op_id %lld ends, but did not begin", (long long)line->op_id);
    struct thread *thread = thread_of(lines, line, &place);
    if (!thread)
        return fail_memory(lines);
    const bool is_open = take(thread, line->op_id, &call);
    if (!is_open) {
        call.body = place;
        if (!fill(lines, line, &call))
            return fail_memory(lines);
    }
    call.body.thread_id = place.thread_id;
    call.body.status = status_of(line);
    bool good = set_times(lines, line, &call);
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

/* Drops a line because a member has an unexpected value, and names the expected value. Always returns
 * false. */
static bool drop_member(struct ct_json_lines *lines, const json_t *object, const char *key,
                        const char *expected)
{
    const json_t *value = json_object_get(object, key);
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    drop(lines, expected, "%s is %.60s: expected %s", key,
         text    ? text
         : value ? "too large"
                 : "missing",
         expected);
    free(text);
    return false;
}

static bool read_members(struct ct_json_lines *lines, json_t *object, struct ct_json_line *line)
{
    const char *phase = ct_json_text(object, "phase", "");
    double ts;
    const int64_t max_ns = (int64_t)CT_DUMP_MOMENT_MAX - lines->offset_ns;
    line->name = ct_json_text(object, "name", "");
    line->is_begin = strcmp(phase, "B") == 0;
    line->layer = ct_json_text(object, "layer", layer_of(line->name));
    line->instance = ct_json_integer(object, "instance", 1);
    if (!json_is_object(object))
        return drop(lines, "object", "expected an object with ts, op_id, phase and name");
    if (!ct_json_is_number(json_object_get(object, "ts"), &ts))
        return drop_member(lines, object, "ts", "a number of seconds");
    if (!ct_json_is_integer(json_object_get(object, "op_id"), &line->op_id))
        return drop_member(lines, object, "op_id", "an integer");
    if (!*line->name)
        return drop_member(lines, object, "name", "the name of a function");
    if (!line->is_begin && strcmp(phase, "E") != 0)
        return drop_member(lines, object, "phase", "\"B\" or \"E\"");
    if (line->instance < 1 || line->instance > INT32_MAX)
        return drop_member(lines, object, "instance", "a number from 1 to 2147483647");
    if (!ct_json_scaled(object, lines->text, strlen(lines->text), "ts", 9, &line->at_ns) ||
        line->at_ns >= max_ns)
        return drop_member(lines, object, "ts", "seconds since the beginning of the trace");
    if (line->is_begin && !json_is_object(json_object_get(object, "details")))
        json_object_set_new(object, "details", json_object());
    if (line->is_begin)
        ct_json_complete(json_object_get(object, "details"), line->layer, line->name);
    line->details = json_object_get(object, "details");
    return true;
}

static bool read_line(struct ct_json_lines *lines, json_t *object)
{
    struct ct_json_line line;
    if (!read_members(lines, object, &line))
        return false;
    const json_t *pid = json_object_get(object, "pid"), *tid = json_object_get(object, "tid");
    char *process = pid ? ct_json_identity(pid) : strdup("1");
    char *thread = tid ? ct_json_identity(tid) : process ? strdup(process) : NULL;
    bool good = true;
    line.process = process;
    line.thread = thread;
    if (!process || !thread)
        good = fail_memory(lines);
    else if (!*process)
        good = drop_member(lines, object, "pid", "the number or the name of a process");
    else if (!*thread)
        good = drop_member(lines, object, "tid", "the number or the name of a thread");
    good = good && (line.is_begin ? begin(lines, &line) : end(lines, &line));
    free(process);
    free(thread);
    return good;
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

/* Reads the next line of the file. Returns its length, or 0 at the end or after an error. */
static size_t get_line(struct ct_json_lines *lines)
{
    errno = 0;
    const ssize_t bytes = getline(&lines->text, &lines->room, lines->file);
    if (bytes < 0 && !feof(lines->file))
        fail(lines, "%s", strerror(errno ? errno : EIO));
    return bytes > 0 ? (size_t)bytes : 0;
}

/* Reads a line. Returns false at the end of the file or if there is a problem. */
static bool next_line(struct ct_json_lines *lines)
{
    const size_t bytes = get_line(lines);
    if (bytes == 0)
        return false;
    lines->number++;
    if (strspn(lines->text, " \t\r\n") == bytes)
        return true;
    char why[JSON_ERROR_TEXT_LENGTH] = "";
    json_t *object = ct_json_parse(lines->text, bytes, why);
    const bool good = object ? read_line(lines, object)
                             : drop(lines, "JSON", "the line is not JSON, or is truncated: %s", why);
    json_decref(object);
    if (!good && !*lines->problem)
        ct_drop(lines->dropped, lines->reason, lines->is_converted ? 0 : (int64_t)lines->number, lines->why);
    return good || !*lines->problem;
}

/* Finds the offset to add to every `ts`, from the first line in which cudatrace reports that a call
 * returned. */
static void find_offset(struct ct_json_lines *lines, int64_t from)
{
    int64_t duration_ns = -1;
    lines->offset_ns = FIRST_NS;
    for (size_t i = 0, bytes; i < OFFSET_LINES && duration_ns < 0 && (bytes = get_line(lines)) > 0; i++) {
        json_t *object = ct_json_parse(lines->text, bytes, NULL);
        const int64_t op_id = ct_json_integer(object, "op_id", 0);
        int64_t at_ns;
        const bool has_ts = ct_json_scaled(object, lines->text, strlen(lines->text), "ts", 9, &at_ns);
        duration_ns = ct_json_integer(json_object_get(object, "details"), "duration_ns", -1);
        if (duration_ns >= 0 && op_id > 0 && op_id <= (int64_t)CT_DUMP_MOMENT_MAX && has_ts && at_ns <= op_id)
            lines->offset_ns = op_id - at_ns;
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

struct ct_json_lines *ct_json_lines_open(int fd, int64_t from, bool is_converted, struct ct_dropped *dropped)
{
    struct ct_json_lines *lines = calloc(1, sizeof(*lines));
    if (!lines || !(lines->file = fdopen(fd, "re"))) {
        free(lines);
        return NULL;
    }
    lines->dropped = dropped;
    dropped->noun = is_converted ? "event" : "line";
    lines->is_converted = is_converted;
    fseeko(lines->file, from, SEEK_SET);
    find_offset(lines, from);
    lines->processes.next = lines->threads.next = 1;
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
    ct_interner_finish(&lines->processes);
    ct_interner_finish(&lines->threads);
    ct_json_frame_finish(&lines->frame);
    free(lines->process);
    free(lines->thread);
    free(lines->text);
    fclose(lines->file);
    free(lines);
}
