/* Reads the GPU work of a trace of one or several files, with the meaning of the view gpu_work. The view
 * reads the properties of the task again for each piece of work, and its rows are long. */
#ifndef CT_GPU_RUNS_H
#define CT_GPU_RUNS_H

#include "scope.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An unknown number. */
#define CT_GPU_UNKNOWN INT64_MIN

/* The columns of gpu_work that all runs of a task share. A string is at the same address in all tasks, and is
 * valid until the work is closed. */
struct ct_gpu_task {
    int64_t gpu_task_id; /* different in all tasks of a file */
    size_t number;       /* different in all tasks of the trace, below ct_gpu_runs_tasks() */
    uint32_t file;       /* its file's place in the series */
    int64_t process_id, device, context, stream;
    int64_t graph;  /* 0: none */
    bool is_wanted; /* of a process with the scope's pid */
    const char *kind, *kernel, *mangled,
        *copy_kind;   /* kernel, mangled and copy_kind: NULL if there is none */
    const char *name; /* the first of kernel, copy_kind and kind */
};

/* A piece of work. Only in the order of the start, all members are set. */
struct ct_gpu_run {
    const struct ct_gpu_task *task;
    int64_t start_ns, duration_ns, end_ns;
    int64_t correlation, queued_ns, bytes; /* CT_GPU_UNKNOWN if NULL */
    int64_t launched_ns; /* in the order of the launch: when the call returned, at the latest start_ns */
};

enum ct_gpu_order {
    CT_GPU_BY_START,  /* all work, by start_ns and end_ns */
    CT_GPU_BY_LAUNCH, /* by launched_ns: the wanted work whose call is known, that was launched up to to_ns,
                       * and starts at from_ns or later. Sets only task, start_ns and launched_ns */
};

struct ct_gpu_runs;

/* Adds an SQL function that reading by launch needs. Returns an SQLite code. */
int ct_gpu_runs_add_function(sqlite3 *connection);

/* Opens the work while another statement reads the trace, so that all queries see the same state of it. The
 * scope must outlive the result. Returns NULL if out of memory. After any other error, the result has no
 * work. */
struct ct_gpu_runs *ct_gpu_runs_open(sqlite3 *connection, enum ct_gpu_order order,
                                     const struct ct_scope *scope);
void ct_gpu_runs_close(struct ct_gpu_runs *runs);

/* Reads the next piece of work. Returns false after the last one, or after an error. */
bool ct_gpu_runs_next(struct ct_gpu_runs *runs, struct ct_gpu_run *run);
/* Returns SQLITE_OK, or the first error. */
int ct_gpu_runs_error(const struct ct_gpu_runs *runs);

/* Returns the number of tasks in all files. */
size_t ct_gpu_runs_tasks(const struct ct_gpu_runs *runs);
/* In the order of the launch: sets the times of the first and the last launch from from_ns to to_ns. Returns
 * false if there is none. */
bool ct_gpu_runs_bounds(const struct ct_gpu_runs *runs, int64_t *first_ns, int64_t *last_ns);
/* Returns the column `call_id` of a piece of work, or CT_GPU_UNKNOWN. */
int64_t ct_gpu_runs_call(struct ct_gpu_runs *runs, const struct ct_gpu_run *run);

#endif
