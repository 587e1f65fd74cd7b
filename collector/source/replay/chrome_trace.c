#include "chrome_trace.h"

#include "chrome_events.h"
#include "unpack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_NS INT64_C(1000000000)         /* start of a clock whose origin is unknown */
#define EPOCH_NS INT64_C(100000000000000000) /* a clock that is this large is the time of day */

static const char no_memory[] = "cannot be read: out of memory";

/* ---- order ---- */

static int by_thread(const void *a, const void *b)
{
    const struct ct_chrome_event *one = a, *other = b;
    if (one->thread != other->thread)
        return (one->thread > other->thread) - (one->thread < other->thread);
    if (one->start_ns != other->start_ns)
        return (one->start_ns > other->start_ns) - (one->start_ns < other->start_ns);
    return (one->end_ns < other->end_ns) - (one->end_ns > other->end_ns);
}

static int by_end(const void *a, const void *b)
{
    const struct ct_chrome_event *one = a, *other = b;
    return (one->end_ns > other->end_ns) - (one->end_ns < other->end_ns);
}

static int by_correlation(const void *a, const void *b)
{
    const struct ct_chrome_kernel *one = a, *other = b;
    return (one->correlation > other->correlation) - (one->correlation < other->correlation);
}

/* Removes events that are not stored. An asynchronous event may have ended without a beginning. */
static void remove_dropped(struct ct_chrome *chrome)
{
    size_t kept = 0;
    for (size_t i = 0; i < chrome->events; i++) {
        const struct ct_chrome_event *event = &chrome->event[i];
        if (event->phase == 'e')
            ct_drop(chrome->dropped, "E", event->place, "an event ends that did not begin");
        else if (event->phase != CT_CHROME_NO_PHASE)
            chrome->event[kept++] = *event;
    }
    chrome->events = kept;
}

/* Counts the events that enclose each event. For a call, counts only the enclosing calls. */
static bool find_depths(struct ct_chrome *chrome)
{
    const struct ct_chrome_event **around = malloc((chrome->events + 1) * sizeof(struct ct_chrome_event *));
    size_t depth = 0;
    unsigned calls = 0;
    if (!around)
        return false;
    qsort(chrome->event, chrome->events, sizeof(*chrome->event), by_thread);
    for (size_t i = 0; i < chrome->events; i++) {
        struct ct_chrome_event *event = &chrome->event[i];
        while (depth > 0 &&
               (around[depth - 1]->thread != event->thread || around[depth - 1]->end_ns <= event->start_ns))
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

static json_t *read_again(int fd, int64_t place, size_t bytes)
{
    char *text = malloc(bytes);
    json_t *object =
        text && pread(fd, text, bytes, place) == (ssize_t)bytes ? ct_json_parse(text, bytes, NULL) : NULL;
    free(text);
    return object;
}

static void set_dimensions(json_t *details, const char *what, const json_t *sizes)
{
    static const char axis[] = "xyz";
    for (size_t i = 0; i < 3; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%s_%c", what, axis[i]);
        json_object_set_new(details, key, json_incref(json_array_get(sizes, i)));
    }
}

/* PyTorch stores the kernel of a launch and the size of a copy in a separate GPU event. */
static void add_from_gpu(const struct ct_chrome *chrome, int fd, json_t *details)
{
    const struct ct_chrome_kernel key = { .correlation = ct_json_integer(details, "correlation", 0) };
    const struct ct_chrome_kernel *kernel =
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

static json_t *details_of(const struct ct_chrome *chrome, int fd, const struct ct_chrome_event *event,
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

static json_t *identity_of(const json_t *object, const char *member)
{
    json_t *value = json_object_get(object, member);
    return value ? json_incref(value) : json_integer(0);
}

/* Writes an event as a line. *last_ns is the return time of the previous call, so that each call gets a
 * distinct time. */
static bool write_event(const struct ct_chrome *chrome, int fd, FILE *to, const struct ct_chrome_event *event,
                        int64_t first_ns, int64_t *last_ns)
{
    json_t *object = read_again(fd, event->place, event->bytes);
    if (!object)
        return false;
    const bool is_open = event->end_ns == CT_CHROME_NOT_YET;
    const char *layer = ct_chrome_layer(ct_json_text(object, "cat", ""), ct_json_text(object, "name", ""));
    const char *range = event->phase == 'b'          ? "nvtxRangeStart"
                        : strchr("iI", event->phase) ? "nvtxMark"
                                                     : "nvtxRangePush";
    const int64_t start_ns = chrome->base_ns + event->start_ns;
    int64_t end_ns = is_open ? start_ns : chrome->base_ns + event->end_ns;
    json_t *details = details_of(chrome, fd, event, object);
    if (!is_open) {
        json_object_set_new(details, "duration_ns", json_integer(end_ns - start_ns));
        end_ns = end_ns > *last_ns ? end_ns : *last_ns + 1;
        *last_ns = end_ns;
    }
    json_t *line =
        json_pack("{s:f,s:I,s:s,s:o,s:o,s:s,s:s,s:o}", "ts", (double)(end_ns - first_ns) / 1e9, "op_id",
                  (json_int_t)(is_open ? -event->place - 1 : end_ns), "phase", is_open ? "B" : "E", "pid",
                  identity_of(object, "pid"), "tid", identity_of(object, "tid"), "name",
                  layer ? ct_json_text(object, "name", "") : range, "layer", layer ? layer : "nvtx",
                  "details", details);
    const bool good = line && json_dumpf(line, to, JSON_COMPACT) == 0 && putc('\n', to) != EOF;
    json_decref(line);
    json_decref(object);
    return good;
}

static bool write_lines(struct ct_chrome *chrome, int fd, FILE *to)
{
    int64_t first_ns = INT64_MAX;
    for (size_t i = 0; i < chrome->events; i++)
        first_ns = chrome->event[i].start_ns < first_ns ? chrome->event[i].start_ns : first_ns;
    if (first_ns > EPOCH_NS) /* the time of day, which all ranks of a job share */
        chrome->base_ns = 0;
    else if (chrome->base_ns <= 0)
        chrome->base_ns = FIRST_NS - first_ns;
    first_ns += chrome->base_ns;
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
static bool write_all(struct ct_chrome *chrome, int fd, FILE *to, char *why, size_t bytes)
{
    char dropped[CT_DROPPED_BYTES + 128] = "";
    remove_dropped(chrome);
    if (chrome->dropped->kinds > 0)
        ct_dropped_text(chrome->dropped, 0, dropped, sizeof(dropped));
    errno = 0;
    if (chrome->is_short)
        snprintf(why, bytes, "%s", no_memory);
    else if (chrome->events == 0)
        snprintf(why, bytes, "is a Chrome trace, but contains no events of threads that can be stored%s%s",
                 *dropped ? ": " : "", dropped);
    else if (!find_depths(chrome))
        snprintf(why, bytes, "%s", no_memory);
    else if (!to || !write_lines(chrome, fd, to))
        snprintf(why, bytes, "cannot be converted: cannot write a temporary file in '%.200s'%s%s",
                 ct_nameless_folder(), errno ? ": " : "", errno ? strerror(errno) : "");
    return !*why;
}

static int convert(struct ct_chrome *chrome, int fd, char *why, size_t bytes)
{
    const int own = ct_nameless_file();
    FILE *to = own >= 0 ? fdopen(dup(own), "w") : NULL;
    const bool is_whole = ct_chrome_read(chrome);
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

int ct_chrome_lines(int fd, int64_t from, struct ct_dropped *dropped, char *why, size_t bytes)
{
    struct ct_chrome *chrome = calloc(1, sizeof(*chrome));
    const int own = chrome ? dup(fd) : -1;
    int lines = -1;
    *why = '\0';
    if (own >= 0 && lseek(own, from, SEEK_SET) == from && (chrome->from.file = fdopen(own, "r")) != NULL &&
        (chrome->open = json_object()) != NULL) {
        chrome->from.at = from;
        chrome->dropped = dropped;
        chrome->threads.next = 1;
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
        ct_interner_finish(&chrome->threads);
        free(chrome->from.text);
        free(chrome->event);
        free(chrome->kernel);
    }
    free(chrome);
    return lines;
}
