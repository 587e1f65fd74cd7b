/* A format of `cudatrace export`, and what formats share: they fill it in, export.c drives it. */
#ifndef CT_EXPORT_FORMAT_H
#define CT_EXPORT_FORMAT_H

#include "events.h"

#include <stdio.h>

struct ct_export_process {
    int64_t process_id, pid;
    int64_t track; /* its pid, unless another process of the trace has it: then a number that none can be */
    char *name;
};

/* An export: the trace it reads, the part of it, and the place it writes to. */
struct ct_export {
    struct ct_stream *stream;
    sqlite3 *connection;
    struct ct_scope scope;
    struct ct_extent extent;
    struct ct_export_process *process; /* by process_id */
    size_t process_count, process_room;
    FILE *to;          /* NULL for a format that `is_file` */
    const char *path;  /* the empty file that such a format fills; NULL for others */
    const char *trace; /* the newest file of the trace */
    void *state;       /* the format's own: zeroed before `begin`, freed behind `finish` */
};

/* Functions may be NULL. False when one cannot go on, for want of memory or by an error of SQLite. */
struct ct_export_format {
    const char *name, *about; /* a paragraph of the help: lines */
    bool is_file;             /* it cannot be a stream: it opens what --output names itself */
    bool is_whole;            /* `begin` writes all of the trace: neither `call` nor `event` is there */
    size_t state_bytes;
    bool (*begin)(struct ct_export *);
    /* One of these two: calls in the order of return, or events in that of time. */
    bool (*call)(struct ct_export *, const struct ct_stream_call *);
    bool (*event)(struct ct_export *, const struct ct_event *);
    bool (*end)(struct ct_export *);
    void (*finish)(struct ct_export *); /* always called */
};

/* Reads the processes: SQLITE_OK, or why not. */
int ct_export_load_processes(struct ct_export *to);
void ct_export_free_processes(struct ct_export *to);
/* The process of a call; never NULL. */
const struct ct_export_process *ct_export_process(const struct ct_export *to, int64_t process_id);

/* A query of schema/exports.sql with the scope bound; the caller finalizes it. NULL after SQLite failed. */
sqlite3_stmt *ct_export_ask(struct ct_export *to, const char *sql);
/* Has each of its rows written; false when that, or SQLite, failed. */
typedef bool ct_export_write(struct ct_export *to, sqlite3_stmt *row);
bool ct_export_each(struct ct_export *to, const char *sql, ct_export_write *write);
/* The same of the calls that have not returned, as far as they are in the scope. */
bool ct_export_each_open_call(struct ct_export *to, ct_export_write *write);
/* Sets errno to what a file of the format's own has failed by, if it has. NULL is fine. */
void ct_export_note_error(sqlite3 *file);
/* A text of a row; "" for NULL. Valid as SQLite has it. */
const char *ct_export_text(sqlite3_stmt *row, int column);

/* Nanoseconds as a number of units of so many, with all their decimals: 1000000000 and 9 for seconds. */
void ct_export_time(struct ct_export *to, int64_t ns, int64_t unit_ns, int decimals);
/* A text as a JSON string; "" for NULL. */
void ct_export_string(struct ct_export *to, const char *text);
/* {"a":1,…}: what the call's row of details has, without the braces, each member behind `before` and then
 * commas; the number of members. */
int ct_export_details(struct ct_export *to, const struct ct_stream_call *call, const char *before);

#endif
