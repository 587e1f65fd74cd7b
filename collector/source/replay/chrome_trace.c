#include "chrome_trace.h"

#include "json_call.h"
#include "json_elements.h"
#include "room.h"
#include "unpack.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_NS   INT64_C(1000000000) /* start of a clock whose origin is unknown */
#define EPOCH_US   1e14                /* a clock in microseconds this large is the time of day */
#define MOMENT_MAX 4e18                /* nanoseconds */

static const char no_memory[] = "cannot be read: out of memory";

struct event {
    double start_us, end_us; /* NAN: not ended */
    int64_t place, below;    /* offset in the file; index of the enclosing open event, or -1 */
    int64_t pid, tid;
    uint32_t bytes;
    uint8_t depth;
    bool is_call;
    char phase;
};

/* Identifies the GPU event that belongs to a launch. */
struct kernel {
    int64_t correlation, place;
    uint32_t bytes;
};

struct chrome {
    struct ct_json_elements from;
    struct event *event;
    size_t events, room;
    struct kernel *kernel;
    size_t kernels, kernel_room;
    json_t *open;    /* maps a thread's or an asynchronous event's key to the index of its open event */
    int64_t base_ns; /* origin of the clock that `ts` uses; 0: unknown */
    bool is_own;
    bool is_short; /* out of memory */
};

/* ---- kinds of events ---- */

static bool is_one_of(const char *category, const char *const *names)
{
    while (*names && strcmp(*names, category) != 0)
        names++;
    return *names != NULL;
}

/* Returns the layer of a call, or NULL if the event is not a call. */
static const char *layer_of(const char *category, const char *name)
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
                                         "Trace",     "cpu_instant_event",   NULL };
    return is_one_of(category, names);
}

/* ---- reading ---- */

static void add_kernel(struct chrome *chrome, const json_t *object)
{
    const int64_t correlation = ct_json_integer(json_object_get(object, "args"), "correlation", 0);
    if (correlation == 0)
        return;
    chrome->is_short |=
        !ct_make_room(&chrome->kernel, chrome->kernels, &chrome->kernel_room, sizeof(*chrome->kernel));
    if (!chrome->is_short)
        chrome->kernel[chrome->kernels++] =
            (struct kernel){ correlation, chrome->from.begin, (uint32_t)chrome->from.bytes };
}

/* Adds an event. Unless `open` is NULL, the event stays open under this key until its end is found. */
static void add_event(struct chrome *chrome, struct event *event, const char *open)
{
    event->place = chrome->from.begin;
    event->bytes = (uint32_t)chrome->from.bytes;
    event->below = open ? ct_json_integer(chrome->open, open, -1) : -1;
    chrome->is_short |=
        !ct_make_room(&chrome->event, chrome->events, &chrome->room, sizeof(*chrome->event)) ||
        (open && json_object_set_new(chrome->open, open, json_integer((json_int_t)chrome->events)) != 0);
    if (!chrome->is_short)
        chrome->event[chrome->events++] = *event;
}

/* Ends the innermost event that is open under the key `open`. */
static void end_event(struct chrome *chrome, const char *open, double end_us)
{
    const int64_t number = ct_json_integer(chrome->open, open, -1);
    if (number < 0)
        return;
    chrome->event[number].end_us = end_us;
    json_object_set_new(chrome->open, open, json_integer(chrome->event[number].below));
}

/* Adds one half of an asynchronous event, whose end may precede its beginning in the file. */
static void add_half(struct chrome *chrome, struct event *event, const json_t *object, const char *open)
{
    char key[256];
    json_t *id = json_object_get(object, "id");
    snprintf(key, sizeof(key), "%.100s %s %lld", open, json_is_string(id) ? json_string_value(id) : "",
             (long long)json_integer_value(id));
    const int64_t number = ct_json_integer(chrome->open, key, -1);
    if (number < 0) {
        add_event(chrome, event, key);
        return;
    }
    struct event *half = &chrome->event[number];
    half->end_us = half->start_us > event->start_us ? half->start_us : event->start_us;
    half->start_us = half->start_us < event->start_us ? half->start_us : event->start_us;
    if (event->phase == 'b') {
        half->place = chrome->from.begin;
        half->bytes = (uint32_t)chrome->from.bytes;
        half->phase = 'b';
    }
    json_object_del(chrome->open, key);
}

static bool is_time(double us)
{
    return us >= 0 && us * 1000 < MOMENT_MAX;
}

static void take_event(struct chrome *chrome, const json_t *object)
{
    const char *phase = ct_json_text(object, "ph", ""), *category = ct_json_text(object, "cat", "");
    const char *name = ct_json_text(object, "name", "");
    const json_t *ts = json_object_get(object, "ts"), *tid = json_object_get(object, "tid");
    struct event event = { .start_us = json_number_value(ts), .end_us = NAN, .phase = *phase };
    event.pid = ct_json_integer(object, "pid", -1);
    event.tid = (uint32_t)json_integer_value(tid);
    event.is_call = layer_of(category, name) != NULL;
    if (is_left_out(category)) {
        add_kernel(chrome, object);
        return;
    }
    if (!json_is_number(ts) || !is_time(event.start_us) || event.pid < 0 || event.pid > INT32_MAX ||
        (tid && !json_is_integer(tid)) || !*phase || phase[1] || (!*name && event.is_call))
        return;
    char open[128];
    snprintf(open, sizeof(open), "%c %lld %lld", *phase == 'B' || *phase == 'E' ? 'B' : 'b',
             (long long)event.pid, (long long)event.tid);
    if (*phase == 'X')
        event.end_us = event.start_us + json_number_value(json_object_get(object, "dur"));
    if (*phase == 'i' || *phase == 'I')
        event.end_us = event.start_us;
    if (*phase == 'B')
        add_event(chrome, &event, open);
    else if (*phase == 'E')
        end_event(chrome, open, event.start_us);
    else if (*phase == 'b' || *phase == 'e')
        add_half(chrome, &event, object, open);
    else if (is_time(event.end_us) && event.end_us >= event.start_us)
        add_event(chrome, &event, NULL);
}

/* Skips events that are too long. Returns false if the document ends within an event. */
static bool read_events(struct chrome *chrome)
{
    struct ct_json_elements *from = &chrome->from;
    for (int byte; !chrome->is_short && (byte = ct_json_next_byte(from)) != EOF && byte != ']';) {
        if (byte == ',')
            continue;
        if (!ct_json_value(from, byte))
            return false;
        json_t *object = from->bytes < CT_ELEMENT_BYTES ? json_loadb(from->text, from->bytes, 0, NULL) : NULL;
        if (!object && from->bytes < CT_ELEMENT_BYTES)
            return false;
        take_event(chrome, object);
        json_decref(object);
    }
    return true;
}

/* Reads the members that define the origin of `ts`. */
static void take_member(struct chrome *chrome, const char *key)
{
    json_t *value = chrome->from.bytes < CT_ELEMENT_BYTES
                        ? json_loadb(chrome->from.text, chrome->from.bytes, JSON_DECODE_ANY, NULL)
                        : NULL;
    if (strcmp(key, "\"baseTimeNanoseconds\"") == 0)
        chrome->base_ns = json_integer_value(value);
    const int64_t own_ns =
        strcmp(key, "\"otherData\"") == 0 ? ct_json_integer(value, "begin_monotonic_ns", 0) : 0;
    chrome->is_own |= own_ns > 0;
    chrome->base_ns = own_ns > 0 ? own_ns : chrome->base_ns;
    json_decref(value);
}

static bool read_document(struct chrome *chrome)
{
    struct ct_json_elements *from = &chrome->from;
    int byte = ct_json_next_byte(from);
    if (byte == '[')
        return read_events(chrome);
    while ((byte == '{' || byte == ',') && (byte = ct_json_next_byte(from)) == '"') {
        char key[64];
        if (!ct_json_value(from, byte))
            return false;
        snprintf(key, sizeof(key), "%.60s", from->text);
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

/* ---- order ---- */

static int by_thread(const void *a, const void *b)
{
    const struct event *one = a, *other = b;
    if (one->pid != other->pid || one->tid != other->tid)
        return one->pid != other->pid ? (one->pid > other->pid) - (one->pid < other->pid)
                                      : (one->tid > other->tid) - (one->tid < other->tid);
    if (one->start_us != other->start_us)
        return (one->start_us > other->start_us) - (one->start_us < other->start_us);
    return (one->end_us < other->end_us) - (one->end_us > other->end_us);
}

static int by_end(const void *a, const void *b)
{
    const struct event *one = a, *other = b;
    const bool one_open = isnan(one->end_us), other_open = isnan(other->end_us);
    if (one_open || other_open)
        return one_open - other_open;
    return (one->end_us > other->end_us) - (one->end_us < other->end_us);
}

static int by_correlation(const void *a, const void *b)
{
    const struct kernel *one = a, *other = b;
    return (one->correlation > other->correlation) - (one->correlation < other->correlation);
}

/* Counts the events that enclose each event. For a call, counts only the enclosing calls. */
static bool find_depths(struct chrome *chrome)
{
    const struct event **around = malloc((chrome->events + 1) * sizeof(struct event *));
    size_t depth = 0;
    unsigned calls = 0;
    if (!around)
        return false;
    qsort(chrome->event, chrome->events, sizeof(*chrome->event), by_thread);
    for (size_t i = 0; i < chrome->events; i++) {
        struct event *event = &chrome->event[i];
        while (depth > 0 && (around[depth - 1]->pid != event->pid || around[depth - 1]->tid != event->tid ||
                             around[depth - 1]->end_us <= event->start_us))
            calls -= around[--depth]->is_call;
        const size_t seen = event->is_call ? calls : depth;
        event->depth = (uint8_t)(seen < 15 ? seen : 15);
        if (event->phase != 'b') {
            around[depth++] = event;
            calls += event->is_call;
        }
    }
    free(around);
    return true;
}

/* ---- writing ---- */

static int64_t nanoseconds(double us)
{
    return (int64_t)(us * 1000 + 0.5);
}

static json_t *read_again(int fd, int64_t place, uint32_t bytes)
{
    char *text = malloc(bytes);
    json_t *object =
        text && pread(fd, text, bytes, place) == (ssize_t)bytes ? json_loadb(text, bytes, 0, NULL) : NULL;
    free(text);
    return object;
}

static void set_dimensions(json_t *details, const char *what, const json_t *sizes)
{
    static const char axis[] = "xyz";
    for (size_t i = 0; i < 3; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%s_%c", what, axis[i]);
        json_object_set_new(details, key, json_integer(json_integer_value(json_array_get(sizes, i))));
    }
}

/* PyTorch stores the kernel of a launch and the size of a copy in a separate GPU event. */
static void add_from_gpu(const struct chrome *chrome, int fd, json_t *details)
{
    const struct kernel key = { .correlation = ct_json_integer(details, "correlation", 0) };
    const struct kernel *kernel =
        key.correlation && chrome->kernels
            ? bsearch(&key, chrome->kernel, chrome->kernels, sizeof(key), by_correlation)
            : NULL;
    json_t *object = kernel ? read_again(fd, kernel->place, kernel->bytes) : NULL;
    const json_t *args = json_object_get(object, "args");
    if (json_object_get(args, "grid")) {
        set_dimensions(details, "grid", json_object_get(args, "grid"));
        set_dimensions(details, "block", json_object_get(args, "block"));
        json_object_set(details, "kernel", json_object_get(object, "name"));
        json_object_set(details, "shared_bytes", json_object_get(args, "shared memory"));
    }
    if (json_object_get(args, "bytes"))
        json_object_set(details, "bytes", json_object_get(args, "bytes"));
    if (json_object_get(args, "stream"))
        json_object_set(details, "stream", json_object_get(args, "stream"));
    json_decref(object);
}

static json_t *details_of(const struct chrome *chrome, int fd, const struct event *event,
                          const json_t *object)
{
    json_t *args = json_object_get(object, "args");
    json_t *details = json_is_object(args) ? json_copy(args) : json_object();
    const bool is_own_range = chrome->is_own && strcmp(ct_json_text(object, "cat", ""), "nvtx") == 0;
    if (event->is_call && !chrome->is_own)
        add_from_gpu(chrome, fd, details);
    if (!event->is_call && !is_own_range) {
        json_object_set(details, "message", json_object_get(object, "name"));
        json_object_set(details, "domain", json_object_get(object, "cat"));
    }
    json_object_set_new(details, "depth", json_integer(event->depth));
    return details;
}

/* Writes an event as a line. *last_ns is the return time of the previous call, so that each call gets a
 * distinct time. */
static bool write_event(const struct chrome *chrome, int fd, FILE *to, const struct event *event,
                        int64_t first_ns, int64_t *last_ns)
{
    json_t *object = read_again(fd, event->place, event->bytes);
    if (!object)
        return false;
    const bool is_open = isnan(event->end_us);
    const char *layer = layer_of(ct_json_text(object, "cat", ""), ct_json_text(object, "name", ""));
    const char *range = event->phase == 'b'          ? "nvtxRangeStart"
                        : strchr("iI", event->phase) ? "nvtxMark"
                                                     : "nvtxRangePush";
    const int64_t start_ns = chrome->base_ns + nanoseconds(event->start_us);
    int64_t end_ns = is_open ? start_ns : chrome->base_ns + nanoseconds(event->end_us);
    json_t *details = details_of(chrome, fd, event, object);
    if (!is_open) {
        json_object_set_new(details, "duration_ns", json_integer(end_ns - start_ns));
        end_ns = end_ns > *last_ns ? end_ns : *last_ns + 1;
        *last_ns = end_ns;
    }
    json_t *line = json_pack("{s:f,s:I,s:s,s:I,s:I,s:s,s:s,s:o}", "ts", (double)(end_ns - first_ns) / 1e9,
                             "op_id", (json_int_t)(is_open ? -event->place - 1 : end_ns), "phase",
                             is_open ? "B" : "E", "pid", (json_int_t)event->pid, "tid",
                             (json_int_t)event->tid, "name", layer ? ct_json_text(object, "name", "") : range,
                             "layer", layer ? layer : "nvtx", "details", details);
    const bool good = line && json_dumpf(line, to, JSON_COMPACT) == 0 && putc('\n', to) != EOF;
    json_decref(line);
    json_decref(object);
    return good;
}

static bool write_lines(struct chrome *chrome, int fd, FILE *to)
{
    double first_us = INFINITY;
    for (size_t i = 0; i < chrome->events; i++)
        first_us = chrome->event[i].start_us < first_us ? chrome->event[i].start_us : first_us;
    if (first_us > EPOCH_US) /* the time of day, which all ranks of a job share */
        chrome->base_ns = 0;
    else if (chrome->base_ns <= 0)
        chrome->base_ns = FIRST_NS - nanoseconds(first_us);
    const int64_t first_ns = chrome->base_ns + nanoseconds(first_us);
    int64_t last_ns = 0;
    qsort(chrome->event, chrome->events, sizeof(*chrome->event), by_end);
    if (chrome->kernels)
        qsort(chrome->kernel, chrome->kernels, sizeof(*chrome->kernel), by_correlation);
    for (size_t i = 0; i < chrome->events; i++) {
        if (!write_event(chrome, fd, to, &chrome->event[i], first_ns, &last_ns))
            return false;
    }
    return fflush(to) == 0;
}

/* ---- a file ---- */

/* Writes the lines. On failure, writes the reason to `why` and returns false. */
static bool write_all(struct chrome *chrome, int fd, FILE *to, char *why, size_t bytes)
{
    errno = 0;
    if (chrome->is_short)
        snprintf(why, bytes, "%s", no_memory);
    else if (chrome->events == 0)
        snprintf(why, bytes, "is a Chrome trace, but contains no events of threads that can be stored");
    else if (!find_depths(chrome))
        snprintf(why, bytes, "%s", no_memory);
    else if (!to || !write_lines(chrome, fd, to))
        snprintf(why, bytes, "cannot be converted: cannot write a temporary file in '%.200s'%s%s",
                 ct_nameless_folder(), errno ? ": " : "", errno ? strerror(errno) : "");
    return !*why;
}

static int convert(struct chrome *chrome, int fd, char *why, size_t bytes)
{
    const int own = ct_nameless_file();
    FILE *to = own >= 0 ? fdopen(dup(own), "w") : NULL;
    const bool is_whole = read_document(chrome);
    const bool good = write_all(chrome, fd, to, why, bytes);
    if (to)
        fclose(to);
    if (good && !is_whole)
        snprintf(why, bytes, "is truncated or is not JSON at byte %lld", (long long)chrome->from.at);
    if (good)
        return own;
    if (own >= 0)
        close(own);
    return -1;
}

int ct_chrome_lines(int fd, int64_t from, char *why, size_t bytes)
{
    struct chrome *chrome = calloc(1, sizeof(*chrome));
    const int own = chrome ? dup(fd) : -1;
    int lines = -1;
    *why = '\0';
    if (own >= 0 && lseek(own, from, SEEK_SET) == from && (chrome->from.file = fdopen(own, "r")) != NULL &&
        (chrome->open = json_object()) != NULL) {
        chrome->from.at = from;
        lines = convert(chrome, fd, why, bytes);
    } else {
        snprintf(why, bytes, "%s", no_memory);
    }
    if (chrome && chrome->from.file)
        fclose(chrome->from.file);
    else if (own >= 0)
        close(own);
    if (chrome) {
        json_decref(chrome->open);
        free(chrome->event);
        free(chrome->kernel);
    }
    free(chrome);
    return lines;
}
