/* A format of `cudatrace export`, and functions that formats share. Each format fills in the struct, and
 * export.c calls its functions. */
#ifndef CT_EXPORT_FORMAT_H
#define CT_EXPORT_FORMAT_H

#include "events.h"

#include <stdio.h>

struct ct_export_process {
    int64_t process_id, pid;
    int64_t track; /* its pid, or a number that no pid can have if another process of the trace has that
                    * pid */
    char *name;
};

/* An export: the trace it reads, the part of it, and the file it writes. */
struct ct_export {
    struct ct_stream *stream;
    sqlite3 *connection;
    struct ct_scope scope;
    struct ct_extent extent;
    struct ct_export_process *process; /* sorted by process_id */
    size_t process_count, process_room;
    FILE *to;          /* NULL if the format `is_file` */
    const char *path;  /* the empty file that such a format fills; NULL for others */
    const char *trace; /* the newest file of the trace */
    void *state;       /* private to the format; zeroed before `begin`, freed after `finish` */
};

/* A format may leave functions NULL. A function returns false if it cannot continue because memory is short
 * or SQLite failed. */
struct ct_export_format {
    const char *name, *about; /* a paragraph of the help: lines */
    bool is_file;             /* the output cannot be a stream, because the format opens the output file
                               * itself */
    bool is_whole;            /* `begin` writes the whole trace; `call` and `event` are NULL */
    size_t state_bytes;
    bool (*begin)(struct ct_export *);
    /* A format sets one of these two. Calls are in the order of return, events in the order of time. */
    bool (*call)(struct ct_export *, const struct ct_stream_call *);
    bool (*event)(struct ct_export *, const struct ct_event *);
    bool (*end)(struct ct_export *);
    void (*finish)(struct ct_export *); /* always called */
};

/* Reads the processes. Returns SQLITE_OK or an error. */
int ct_export_load_processes(struct ct_export *to);
void ct_export_free_processes(struct ct_export *to);
/* Returns the process of a call, never NULL. */
const struct ct_export_process *ct_export_process(const struct ct_export *to, int64_t process_id);

/* Prepares a query of schema/exports.sql with the scope bound; the caller finalizes it. Returns NULL if
 * SQLite failed. */
sqlite3_stmt *ct_export_ask(struct ct_export *to, const char *sql);
/* Calls `write` for each row. Returns false if `write` or SQLite failed. */
typedef bool ct_export_write(struct ct_export *to, sqlite3_stmt *row);
bool ct_export_each(struct ct_export *to, const char *sql, ct_export_write *write);
/* Calls `write` for each call in the scope that has not returned. */
bool ct_export_each_open_call(struct ct_export *to, ct_export_write *write);
/* Sets errno from the error of a format's own database, if it has one. `file` may be NULL. */
void ct_export_note_error(sqlite3 *file);
/* Returns a text of a row, or "" if it is NULL. It is valid as long as SQLite keeps the value. */
const char *ct_export_text(sqlite3_stmt *row, int column);

/* Prints nanoseconds in units of `unit_ns` with `decimals` decimals: 1000000000 and 9 for seconds. */
void ct_export_time(struct ct_export *to, int64_t ns, int64_t unit_ns, int decimals);
/* Prints a text as a JSON string; NULL as "". */
void ct_export_string(struct ct_export *to, const char *text);
/* Prints the call's row of details as members of a JSON object, without the braces. `before` precedes the
 * first member, commas the others. Returns the number of members. */
int ct_export_details(struct ct_export *to, const struct ct_stream_call *call, const char *before);

#endif
