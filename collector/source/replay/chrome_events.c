#include "chrome_events.h"

#include "room.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOMENT_MAX_NS INT64_C(4000000000000000000)

/* ---- kinds of events ---- */

static bool is_one_of(const char *category, const char *const *names)
{
    while (*names && strcmp(*names, category) != 0)
        names++;
    return *names != NULL;
}

const char *ct_chrome_layer(const char *category, const char *name)
{
    static const char *const layers[][2] = {
        { "cuda_runtime", "runtime" }, { "runtime", "runtime" }, { "cuda_driver", "driver" },
        { "driver", "driver" },        { "ioctl", "ioctl" },
    };
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        if (strcmp(category, layers[i][0]) == 0)
            return layers[i][1];
    }
    /* cudatrace's category for calls that have not returned. */
    if (strcmp(category, "open") == 0)
        return strncmp(name, "cuda", 4) == 0 ? "runtime" : "driver";
    return NULL;
}

/* Returns whether an event is skipped because it describes GPU activity or the profiler itself. */
static bool is_left_out(const char *category)
{
    static const char *const names[] = { "kernel",    "gpu_memcpy",          "gpu_memset",
                                         "gpu_graph", "gpu_user_annotation", "overhead",
                                         "Trace",     "cpu_instant_event",   "cuda_sync",
                                         NULL };
    return is_one_of(category, names);
}

/* Returns whether a phase marks names, counters, arrows and other things that are not parts of a thread's
 * time. */
static bool is_left_out_phase(const char *phase)
{
    return *phase && !phase[1] && strchr("MCPsftNODnSTpFvVRc(),", *phase);
}

/* ---- reading ---- */

static void drop(struct ct_chrome *chrome, const char *reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Counts the current element as dropped. */
static void drop(struct ct_chrome *chrome, const char *reason, const char *format, ...)
{
    char what[CT_DROPPED_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(what, sizeof(what), format, values);
    va_end(values);
    ct_drop(chrome->dropped, reason, chrome->from.begin, what);
}

static void drop_member(struct ct_chrome *chrome, const json_t *object, const char *name,
                        const char *expected)
{
    const json_t *value = json_object_get(object, name);
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    drop(chrome, expected, "%s is %.60s: expected %s", name, text ? text : "missing", expected);
    free(text);
}

static void add_kernel(struct ct_chrome *chrome, const json_t *object)
{
    const int64_t correlation = ct_json_integer(json_object_get(object, "args"), "correlation", 0);
    if (correlation == 0)
        return;
    chrome->is_short |=
        !ct_make_room(&chrome->kernel, chrome->kernels, &chrome->kernel_room, sizeof(*chrome->kernel));
    if (!chrome->is_short)
        chrome->kernel[chrome->kernels++] =
            (struct ct_chrome_kernel){ correlation, chrome->from.begin, chrome->from.bytes };
}

/* Adds an event. Unless `open` is NULL, the event stays open under this key until its end is found. */
static void add_event(struct ct_chrome *chrome, struct ct_chrome_event *event, const char *open)
{
    event->place = chrome->from.begin;
    event->bytes = chrome->from.bytes;
    event->below = open ? ct_json_integer(chrome->open, open, -1) : -1;
    chrome->is_short |=
        !ct_make_room(&chrome->event, chrome->events, &chrome->room, sizeof(*chrome->event)) ||
        (open && json_object_set_new(chrome->open, open, json_integer((json_int_t)chrome->events)) != 0);
    if (!chrome->is_short)
        chrome->event[chrome->events++] = *event;
}

/* Takes the innermost event that is open under the key `open`. Returns NULL if there is none. */
static struct ct_chrome_event *take_open(struct ct_chrome *chrome, const char *open)
{
    const int64_t number = ct_json_integer(chrome->open, open, -1);
    if (number < 0)
        return NULL;
    json_object_set_new(chrome->open, open, json_integer(chrome->event[number].below));
    return &chrome->event[number];
}

static void end_event(struct ct_chrome *chrome, const struct ct_chrome_event *end, const char *open)
{
    struct ct_chrome_event *begun = take_open(chrome, open);
    if (!begun || begun->phase == CT_CHROME_NO_PHASE) {
        if (!begun && end->phase != CT_CHROME_NO_PHASE)
            drop(chrome, "E", "an event ends that did not begin");
        return;
    }
    begun->end_ns = end->start_ns;
    if (end->start_ns < begun->start_ns) {
        drop(chrome, "B E", "an event ends %.3f us before it began",
             (double)(begun->start_ns - end->start_ns) / 1000);
        begun->phase = CT_CHROME_NO_PHASE;
    }
}

/* Adds one half of an asynchronous event, whose end may precede its beginning in the file. */
static void add_half(struct ct_chrome *chrome, struct ct_chrome_event *event, const json_t *object)
{
    json_t *id = json_pack("[O?,O?,O?]", json_object_get(object, "cat"), json_object_get(object, "id"),
                           json_object_get(object, "pid"));
    char *key = id ? json_dumps(id, JSON_COMPACT) : NULL;
    json_decref(id);
    chrome->is_short |= !key;
    const int64_t number = key ? ct_json_integer(chrome->open, key, -1) : -1;
    struct ct_chrome_event *half =
        number >= 0 && chrome->event[number].phase != event->phase ? take_open(chrome, key) : NULL;
    if (key && !half)
        add_event(chrome, event, key);
    free(key);
    if (!half)
        return;
    half->end_ns = half->start_ns > event->start_ns ? half->start_ns : event->start_ns;
    half->start_ns = half->start_ns < event->start_ns ? half->start_ns : event->start_ns;
    if (event->phase == 'b') {
        half->place = chrome->from.begin;
        half->bytes = chrome->from.bytes;
        half->thread = event->thread;
    }
    half->phase = 'b';
}

/* Reads a member in microseconds. Returns false if it is not a time from 0 on. */
static bool read_time(const struct ct_chrome *chrome, const json_t *object, const char *name, int64_t *ns)
{
    return ct_json_scaled(object, chrome->from.text, chrome->from.bytes, name, 3, ns) && *ns < MOMENT_MAX_NS;
}

/* Returns the number of the event's thread, or 0 after dropping the event. */
static int64_t thread_of(struct ct_chrome *chrome, const json_t *object)
{
    static const char *const members[] = { "pid", "tid" };
    char *identity[2] = { NULL, NULL }, *text = NULL;
    int64_t thread = 0;
    bool is_new, is_good = true;
    for (int i = 0; i < 2; i++) {
        const json_t *value = json_object_get(object, members[i]);
        identity[i] = value ? ct_json_identity(value) : strdup("0");
        if (is_good && identity[i] && !*identity[i]) {
            drop_member(chrome, object, members[i], "a number or a name");
            is_good = false;
        }
    }
    if (is_good &&
        (!identity[0] || !identity[1] || asprintf(&text, "%s\x1f%s", identity[0], identity[1]) < 0 ||
         (thread = ct_interner_get(&chrome->threads, text, &is_new)) == 0))
        chrome->is_short = true;
    free(text);
    free(identity[0]);
    free(identity[1]);
    return thread;
}

/* Fills in the times of an event. Returns false after dropping it. */
static bool set_times(struct ct_chrome *chrome, const json_t *object, struct ct_chrome_event *event)
{
    int64_t duration_ns = 0;
    event->end_ns = CT_CHROME_NOT_YET;
    if (!read_time(chrome, object, "ts", &event->start_ns)) {
        drop_member(chrome, object, "ts", "a number of microseconds, from 0 on");
        return false;
    }
    if (event->phase == 'i' || event->phase == 'I')
        event->end_ns = event->start_ns;
    if (event->phase != 'X')
        return true;
    if (json_object_get(object, "dur") &&
        (!read_time(chrome, object, "dur", &duration_ns) || event->start_ns + duration_ns >= MOMENT_MAX_NS)) {
        drop_member(chrome, object, "dur", "a number of microseconds, from 0 on");
        return false;
    }
    event->end_ns = event->start_ns + duration_ns;
    return true;
}

/* Fills in an event. Returns false after dropping it. */
static bool fill_event(struct ct_chrome *chrome, const json_t *object, struct ct_chrome_event *event)
{
    const char *name = ct_json_text(object, "name", "");
    event->is_call = ct_chrome_layer(ct_json_text(object, "cat", ""), name) != NULL;
    if (!strchr("XBEbeiI", event->phase)) {
        drop_member(chrome, object, "ph", "one of the phases X, B, E, b, e and i");
        return false;
    }
    if (!*name && event->is_call && event->phase != 'E') {
        drop_member(chrome, object, "name", "the name of a function");
        return false;
    }
    return set_times(chrome, object, event);
}

static void take_event(struct ct_chrome *chrome, const json_t *object)
{
    const char *phase = ct_json_text(object, "ph", "");
    const bool is_nested = strcmp(phase, "B") == 0 || strcmp(phase, "E") == 0;
    const bool is_left = is_left_out(ct_json_text(object, "cat", "")) ||
                         (*phase == 'i' && strcmp(ct_json_text(object, "s", ""), "g") == 0);
    struct ct_chrome_event event = { .end_ns = CT_CHROME_NOT_YET,
                                     .phase = *phase && !phase[1] ? *phase : '?' };
    if (is_left && !is_nested)
        add_kernel(chrome, object);
    if ((is_left && !is_nested) || is_left_out_phase(phase))
        return;
    event.thread = thread_of(chrome, object);
    if (event.thread == 0)
        return;
    /* The end of an event that is not stored must not end the event around it. */
    if (is_left || !fill_event(chrome, object, &event)) {
        event.start_ns = CT_CHROME_NOT_YET;
        event.phase = CT_CHROME_NO_PHASE;
        if (!is_nested)
            return;
    }
    char open[32];
    snprintf(open, sizeof(open), "%lld", (long long)event.thread);
    if (*phase == 'E')
        end_event(chrome, &event, open);
    else if (*phase == 'b' || *phase == 'e')
        add_half(chrome, &event, object);
    else
        add_event(chrome, &event, *phase == 'B' ? open : NULL);
}

/* Returns false if the document ends within an event. */
static bool read_events(struct ct_chrome *chrome)
{
    struct ct_json_elements *from = &chrome->from;
    char why[JSON_ERROR_TEXT_LENGTH] = "";
    for (int byte; !chrome->is_short && (byte = ct_json_next_byte(from)) != EOF && byte != ']';) {
        if (byte == ',')
            continue;
        if (!ct_json_value(from, byte))
            return false;
        json_t *object = from->is_short ? NULL : ct_json_parse(from->text, from->bytes, why);
        if (json_is_object(object))
            take_event(chrome, object);
        else if (from->is_short)
            drop(chrome, "memory", "there is not enough memory for the event");
        else
            drop(chrome, "JSON", "expected an object%s%s", object ? "" : ": ", object ? "" : why);
        json_decref(object);
    }
    return true;
}

/* Reads the members that define the origin of `ts`. */
static void take_member(struct ct_chrome *chrome, const char *key)
{
    const bool has_base = strcmp(key, "\"baseTimeNanoseconds\"") == 0;
    const bool has_own = strcmp(key, "\"otherData\"") == 0;
    if ((!has_base && !has_own) || chrome->from.is_short)
        return;
    json_t *value = ct_json_parse(chrome->from.text, chrome->from.bytes, NULL);
    if (has_base)
        ct_json_is_integer(value, &chrome->base_ns);
    const int64_t own_ns = has_own ? ct_json_integer(value, "begin_monotonic_ns", 0) : 0;
    chrome->is_own |= own_ns > 0;
    chrome->base_ns = own_ns > 0 ? own_ns : chrome->base_ns;
    json_decref(value);
}

bool ct_chrome_read(struct ct_chrome *chrome)
{
    struct ct_json_elements *from = &chrome->from;
    int byte = ct_json_next_byte(from);
    if (byte == '[')
        return read_events(chrome);
    while ((byte == '{' || byte == ',') && (byte = ct_json_next_byte(from)) == '"') {
        char key[64];
        if (!ct_json_value(from, byte))
            return false;
        snprintf(key, sizeof(key), "%.60s", from->text ? from->text : "");
        if (ct_json_next_byte(from) != ':' || (byte = ct_json_next_byte(from)) == EOF)
            return false;
        const bool has_events = byte == '[' && strcmp(key, "\"traceEvents\"") == 0;
        if (!(has_events ? read_events(chrome) : ct_json_value(from, byte)))
            return false;
        if (!has_events)
            take_member(chrome, key);
        byte = ct_json_next_byte(from);
    }
    return byte == '}';
}
