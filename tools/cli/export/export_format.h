/* Defines the interface of a format of `cudatrace export`, and functions that formats share. Each format
 * fills in a struct ct_export_format, whose functions export.c calls. */
#ifndef CT_EXPORT_FORMAT_H
#define CT_EXPORT_FORMAT_H

#include "events.h"
#include "series.h"

#include <stdio.h>

struct ct_work;

struct ct_export_process {
    int64_t process_id, pid;
    int64_t track; /* the pid, or a number that cannot be a pid if another process in the trace has the same
                    * pid */
    char *name;
};

/* The state of an export: the trace, the part of the trace to write, and the output file. */
struct ct_export {
    struct ct_stream *stream;
    sqlite3 *connection;
    struct ct_scope scope;
    struct ct_extent extent;
    struct ct_export_process *process; /* sorted by process_id */
    size_t process_count, process_room;
    FILE *to;         /* NULL if the format `is_file` */
    const char *path; /* the empty file that an `is_file` format fills; NULL for other formats */
    const struct ct_series *series; /* the files of the trace, newest first */
    struct ct_export_work *work;    /* NULL if the format has no `work` */
    bool has_caused_work;           /* of the call whose beginning is passed to `event` */
    void *state; /* private to the format; zeroed before `begin` and freed after `finish` */
};

/* A format may leave functions NULL. A function returns false if it cannot continue, because it is out of
 * memory or SQLite failed. */
struct ct_export_format {
    const char *name, *about; /* the lines of a paragraph in the help text */
    bool is_file;             /* the format opens the output file itself, so the output cannot be a stream */
    bool is_binary;           /* the output is a stream, but not text */
    bool is_whole;            /* `begin` writes the whole trace; `call` and `event` are NULL */
    size_t state_bytes;
    bool (*begin)(struct ct_export *);
    /* A format sets either `call` or `event`. Calls are passed in the order in which they return, and events
     * in chronological order. */
    bool (*call)(struct ct_export *, const struct ct_stream_call *);
    bool (*event)(struct ct_export *, const struct ct_event *);
    /* Receives GPU work (export_work.h), one stream after the other, after all events. */
    bool (*work)(struct ct_export *, const struct ct_work *);
    bool has_no_causes; /* the format does not show which calls caused work */
    bool (*end)(struct ct_export *);
    void (*finish)(struct ct_export *); /* always called */
};

/* Loads the trace's processes. Returns SQLITE_OK or an error. */
int ct_export_load_processes(struct ct_export *to);
void ct_export_free_processes(struct ct_export *to);
/* Returns the process with this ID. Never returns NULL. */
const struct ct_export_process *ct_export_process(const struct ct_export *to, int64_t process_id);

/* Prepares a query from schema/exports.sql, and binds the scope to it. The caller finalizes the statement.
 * Returns NULL if SQLite failed. */
sqlite3_stmt *ct_export_ask(struct ct_export *to, const char *sql);
/* Calls `write` for each row of a query. Returns false if `write` or SQLite failed. */
typedef bool ct_export_write(struct ct_export *to, sqlite3_stmt *row);
bool ct_export_each(struct ct_export *to, const char *sql, ct_export_write *write);
/* Like ct_export_each(), but writes nothing if the trace was written by an older version and lacks a view
 * that the query needs. */
bool ct_export_each_of_newer(struct ct_export *to, const char *sql, ct_export_write *write);
/* Calls `write` for each call in the scope that has not returned yet. */
bool ct_export_each_open_call(struct ct_export *to, ct_export_write *write);
/* Sets errno to the error, if any, of the database that a format writes. `file` may be NULL. */
void ct_export_note_error(sqlite3 *file);
/* Returns a text column of a row, or "" if it is NULL. The string is valid as long as SQLite keeps the value.
 */
const char *ct_export_text(sqlite3_stmt *row, int column);

/* Prints a time in units of `unit_ns` with `decimals` decimals. For seconds, pass 1000000000 and 9. */
void ct_export_time(struct ct_export *to, int64_t ns, int64_t unit_ns, int decimals);
/* Prints `text` as a JSON string, and NULL as "". */
void ct_export_string(struct ct_export *to, const char *text);
/* Prints the row with the call's details as members of a JSON object, without the braces. `before` is printed
 * before the first member, and a comma before each of the others. Returns the number of members. */
int ct_export_details(struct ct_export *to, const struct ct_stream_call *call, const char *before);

/* The columns of ct_sql_exports_gpu_counters: the GPU's number and name, the time, and the counters. A
 * counter has its column's name, and is NULL if its value is unknown. */
enum { CT_GPU_COLUMN_ID, CT_GPU_COLUMN_NAME, CT_GPU_COLUMN_TIME, CT_GPU_COLUMN_COUNTERS };

#endif
