/* What the formats of `cudatrace export` share: export.c calls them, the others are them. */
#ifndef CT_EXPORT_H
#define CT_EXPORT_H

#include "call_stream.h"

struct ct_export_process {
    int64_t process_id, pid;
    int64_t track; /* its pid, unless another process of the trace has it: then a number that none can be */
    char *name;
};

struct ct_export {
    struct ct_stream *stream;
    sqlite3 *connection;
    struct ct_stream_choice choice;
    struct ct_extent extent;
    struct ct_export_process *process; /* by process_id */
    size_t process_count;
    FILE *to;          /* NULL for a format that `is_file`: */
    const char *path;  /* the empty file that it fills */
    const char *trace; /* the newest file of it */
    void *state;       /* the format's own */
};

/* A format; all of it but `call` may be NULL. False when it cannot go on, for want of memory or by an error
 * of SQLite. */
struct ct_export_format {
    const char *name;
    bool is_file; /* it cannot be a stream: it opens what --output names itself */
    bool (*begin)(struct ct_export *);
    bool (*call)(struct ct_export *, const struct ct_stream_call *); /* in the order of return */
    bool (*end)(struct ct_export *);
    void (*finish)(struct ct_export *); /* frees its state; always called */
};
extern const struct ct_export_format ct_export_chrome, ct_export_perfetto, ct_export_jsonl, ct_export_csv,
    ct_export_nsys;

/* The next row of schema/exports.sql's open_calls that is wanted: SQLite's code. */
int ct_export_next_open_call(struct ct_export *to, sqlite3_stmt *rows);

/* A command that exports: with `output` it has one format, and that is where it writes unless it is told. */
int ct_export_command(int argc, char **argv, const char *help, const struct ct_export_format *format,
                      const char *output);

/* The process of a call; never NULL. */
const struct ct_export_process *ct_export_process(const struct ct_export *to, int64_t process_id);
/* A query of schema/exports.sql with what is streamed bound; the caller finalizes it. NULL after SQLite
 * failed. */
sqlite3_stmt *ct_export_ask(struct ct_export *to, const char *sql);

/* {"a":1,…}: what the call's row of details has, without the braces, each member behind `before` and then
 * commas; the number of members. */
int ct_export_details(struct ct_export *to, const struct ct_stream_call *call, const char *before);

#endif
