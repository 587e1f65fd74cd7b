/* The state of a sweep over a trace's GPU work. The work arrives in the order of its start. */
#ifndef CT_GPU_SWEEP_STATE_H
#define CT_GPU_SWEEP_STATE_H

#include "gpu_runs.h"
#include "gpu_sums_rows.h"
#include "host_calls.h"
#include "intern.h"

#include <stdbool.h>
#include <string.h>

/* A time or a number that is unknown. */
#define NONE CT_GPU_UNKNOWN

/* What a column of the busy times is about. */
enum part { PART_ANY, PART_KERNEL, PART_COPY, PART_BOTH, PART_GRAPH, PART_COMPUTING, PARTS };

/* A piece of work. */
struct work {
    struct ct_gpu_run run;
    int64_t device, process_id, recording, start_ns, end_ns; /* recording: NONE if unknown */
    char kind; /* the first letter of kernel, copy, set or graph */
    const char *name;
    bool is_wanted; /* of a process with the scope's pid */
};

/* A period in which a process keeps a device busy. Work that begins before its end extends it. */
struct period {
    size_t share; /* place in the sums, plus 1; 0: none yet */
    int64_t process_id, from_ns, to_ns, alone_ns;
    bool is_open;
};

struct device {
    int64_t number;
    /* For gaps: all work. */
    int64_t until_ns;
    const char *ended; /* the name of the work that ended at until_ns */
    /* Starts of the first wanted work, and of the first in the window; NONE: none yet. */
    int64_t begun_ns, window_begun_ns;
    /* Wanted work in the window. */
    size_t busy; /* place in the sums, plus 1; 0: none yet */
    int64_t covered_ns[PARTS];
    int64_t late_from_ns; /* late_ns of the sums counts from this time */
    /* Periods of processes. */
    struct period *period;
    size_t periods, period_room;
    int64_t swept_ns;
};

/* A gap between the work of a device. */
struct gap {
    size_t device;
    int64_t from_ns, to_ns;
    const char *ended, *begun;
    bool is_wanted, is_wanted_in_window; /* the second: with the work in the window alone */
};

/* A part of a gap, which is counted when it is known when the last kernel ends. */
struct late_part {
    size_t row;
    int64_t from_ns, to_ns, ns;
};

/* A gap, divided by the state of the host. */
struct gap_part {
    const char *state, *call; /* call: NULL for states without a call */
    int64_t ns;
};
struct divided_gap {
    struct gap gap;
    struct gap_part *part;
    size_t parts, room;
};

struct sweep {
    sqlite3 *connection;
    const struct ct_scope *scope;
    struct ct_gpu_sums *sums;
    struct ct_host_calls *calls;
    struct ct_gpu_runs *runs;
    struct device *device;
    size_t devices, device_room, last_device;
    struct ct_intern recordings_found;
    struct ct_intern work_found;
    struct {
        size_t work, recording; /* of its last run: places in the sums, plus 1; 0: none yet */
    } * of_task;                /* by ct_gpu_task.number */
    size_t busy_room, idle_room, share_room, recording_room, work_room;
    double *uncut_ns; /* for each row of idle times: its time, if there is no kernel */
    size_t uncut_room;
    struct {
        const char *state, *call;
        size_t device, row;
    } recent[256];             /* rows of idle times by a hash of the strings' addresses */
    int64_t first_ns, last_ns; /* of the wanted kernels and whole graphs; NONE: none yet */
    struct late_part *late;    /* in the order of to_ns */
    size_t late_begin, late_count, late_room;
    struct divided_gap divided; /* the last gap */
    struct divided_gap *first;  /* gaps before the first work of a recording, of which the end decides
                                 * whether they are between two recordings */
    size_t firsts, first_room;
    int error;
};

static inline bool has_from(const struct sweep *sweep)
{
    return sweep->scope->from_ns > 0;
}

static inline bool has_to(const struct sweep *sweep)
{
    return sweep->scope->to_ns < INT64_MAX;
}

static inline int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline bool fail(struct sweep *sweep, int error)
{
    if (sweep->error == SQLITE_OK)
        sweep->error = error;
    return false;
}

/* Copies a string, or NULL. If out of memory, reports an error and returns NULL. */
static inline char *copy_text(struct sweep *sweep, const char *text)
{
    char *copied = text ? strdup(text) : NULL;
    if (text && !copied)
        fail(sweep, SQLITE_NOMEM);
    return copied;
}

#endif
