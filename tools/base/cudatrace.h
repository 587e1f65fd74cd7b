/* What the files of tools/ share. */
#ifndef CT_CUDATRACE_H
#define CT_CUDATRACE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { EXIT_USAGE = 2 };

/* The options that every command takes. */
struct ct_options {
    const char *database; /* NULL: not given */
    const char *session;  /* valid */
    bool session_given;   /* by --session */
    bool session_named;   /* by that, or by $CUDATRACE_SESSION */
    char session_found[64]; /* what `session` then points to: that of a trace (sessions.h) */
    char shm_dir[144];    /* where the session's files are, absolute; CT_SHM_DIR_BYTES */
    bool shm_dir_given;   /* by --shm-dir */
};

#define CT_SHM_DIR_HELP                                                                                      \
    "  --shm-dir DIR   where its shared memory is (default: $CUDATRACE_SHM_DIR, or /dev/shm)\n"

/* A command: gets the arguments behind its name, argv[0] being the name. Returns the exit status. */
typedef int ct_command(int argc, char **argv);
ct_command ct_run, ct_sql, ct_report, ct_diff, ct_timeline, ct_top, ct_html, ct_export, ct_flush, ct_set,
    ct_status, ct_stop, ct_doctor, ct_gc;

/* "cudatrace: …" and a line's end on standard error; returns the status. */
int ct_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Has what was printed written; false when that failed now or before, which is said when the command is at
 * its end. */
bool ct_flush_output(void);

/* getopt_long over `known` (ended by {0}), to which --db, --session, --shm-dir and --help are added. `help`
 * goes to standard output for --help, and *done is set; a wrong option is reported and gives EXIT_USAGE
 * through *status, with *done. The value of another option is given to `on_option`, which may be NULL and
 * returns false after reporting. Returns the index of the first argument. */
struct option;
int ct_options_parse(int argc, char **argv, const struct option *known, const char *help,
                     struct ct_options *options, bool (*on_option)(int option, const char *value, void *data),
                     void *data, bool *done, int *status);

/* ---- places.c: the other two files, into `out` of PATH_MAX bytes; false when they are not found ---- */

bool ct_place_hook(char *out);
bool ct_place_daemon(char *out);

/* ---- set.c: what is recorded ---- */

/* The options of `run` and `set` that choose what is recorded: rows for getopt_long, and their help. */
enum { CT_OPTION_LAYERS = 2000, CT_OPTION_CALLS, CT_OPTION_SAMPLE };
#define CT_SELECTION_OPTIONS                                                                                 \
    { "layers", required_argument, NULL, CT_OPTION_LAYERS },                                                 \
        { "calls", required_argument, NULL, CT_OPTION_CALLS },                                               \
    {                                                                                                        \
        "sample", required_argument, NULL, CT_OPTION_SAMPLE                                                  \
    }
#define CT_SELECTION_HELP                                                                                    \
    "  --layers LIST   record these layers: driver, runtime, ioctl, nvtx, or all\n"                          \
    "  --calls LIST    record driver and runtime functions by pattern, '!' before those to\n"                \
    "                  leave out, the last match deciding: 'cuMem*,!cuMemGetInfo*'; '*' is all\n"            \
    "  --sample N      record one of N outermost calls with all that it calls\n"

struct ct_selection_options {
    const char *layers, *calls, *sample; /* NULL: not given */
};
/* Takes one of these options; false after reporting that the value is none. */
bool ct_selection_take(struct ct_selection_options *options, const char *command, int option,
                       const char *value);

/* ---- client.c: the daemon's command socket ---- */

/* A connection to the session's daemon, or -1 when none serves it: this user's own first, then the system's,
 * as the hook looks. */
int ct_client_connect(const struct ct_options *options);
/* To the user's own alone. */
int ct_client_connect_own(const struct ct_options *options);
/* The same by its socket's path; -1, too, when it is not that user who listens there. */
int ct_client_connect_path(const char *path, uint32_t uid);

enum ct_answer {
    CT_ANSWER_NONE, /* the daemon went away, or is stopped: ct_client_why() */
    CT_ANSWER_OK,
    CT_ANSWER_ERROR,   /* it tried; a sentence says what became of it */
    CT_ANSWER_REFUSED, /* it did nothing: a sentence says who may ask that */
};
/* Sends a line and reads one; what that says behind the word for its kind goes to `text`. A daemon that is
 * busy is waited for. */
enum ct_answer ct_client_ask(int fd, const char *line, char *text, size_t bytes);
/* The same; one that has not answered after so many seconds is not waited for any more, 0 for never. */
enum ct_answer ct_client_ask_within(int fd, const char *line, char *text, size_t bytes, unsigned patience_s);
/* Its status, lines to be freed; NULL when it does not come whole. `patience_s`: after how many seconds one
 * that is busy is not waited for any more, 0 for never. */
char *ct_client_status(int fd, unsigned patience_s);
/* Connects to the daemon that is meant, which with --db is the one that writes that, asks for what `command`
 * is to do and reports failures. Returns the exit status. */
int ct_client_command(struct ct_options *options, const char *command, const char *line);
/* Why a daemon did not answer, to go behind "the daemon"; valid until the next call. */
const char *ct_client_why(int fd);
/* Whether the daemon's process is stopped, by a signal or a debugger. */
bool ct_client_is_stopped(int fd);

/* ---- printable.c: text of unknown origin ---- */

/* A copy, to be freed, with what would steer a terminal written as \n, \t or \xNN: control characters, marks
 * of direction, bytes that are no UTF-8. NULL without memory. */
char *ct_printable(const char *text, size_t bytes);
/* The same of what vprintf() would print. */
char *ct_printable_format(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* Characters, not bytes: what continues a character in UTF-8 takes no room. */
int ct_text_width(const char *text);
/* The bytes of the first `width` characters. */
int ct_text_bytes(const char *text, int width);

/* ---- query.c: databases and results ---- */

struct sqlite3;
struct sqlite3_stmt;

/* What a file is, looked at without writing. */
struct ct_trace_facts {
    int64_t application; /* PRAGMA application_id: CT_APPLICATION_ID for a trace */
    int64_t schema;      /* PRAGMA user_version */
    int64_t objects;     /* tables and others in it */
    char boot_id[64];    /* of a trace */
};
/* False when it is no database that can be read; `problem` says why. */
bool ct_trace_inspect(const char *path, struct ct_trace_facts *facts, char *problem, size_t bytes);
/* Opens one file of a trace read-only; an SQLite code. The connection is the caller's to close either way. */
int ct_trace_open_file(const char *path, struct sqlite3 **connection);
/* Its name for SQLite, for a connection that takes URIs; sqlite3_free() it. NULL without memory. */
char *ct_trace_file_uri(const char *path);
/* Opens the trace read-only, all its files as one; NULL after reporting. `found` may be NULL; else it gets
 * the files, for more connections with ct_series_open(). */
struct ct_series;
struct sqlite3 *ct_trace_open(const struct ct_options *options, struct ct_series *found);
/* Why a query that is ours failed with `rc`; true when that is the trace's age. */
bool ct_trace_why(struct sqlite3 *connection, int rc, char *why, size_t bytes);
/* What went wrong: what the connection says, or, where it knows of no error, what `rc` stands for. Valid until
 * the connection's next use. */
const char *ct_sqlite_why(struct sqlite3 *connection, int rc);
/* Nothing but reading from here on, whatever a query or the schema of the file asks for. */
void ct_trace_confine(struct sqlite3 *connection);
/* Queries that take long fail from here on: for looks at what a trace has one row of. In a file of somebody's
 * making it may be a view without end. */
void ct_trace_hurry(struct sqlite3 *connection);

/* ---- rows.c: results ---- */

enum ct_format { CT_FORMAT_TEXT, CT_FORMAT_CSV, CT_FORMAT_JSON, CT_FORMAT_MARKDOWN, CT_FORMAT_COUNT };
#define CT_FORMAT_HELP "  --format F      text (aligned columns), csv, json or markdown (default: text)\n"

/* False after reporting a name that is no format. */
bool ct_format_parse(const char *name, enum ct_format *format);
/* Columns of the terminal that is standard output; 0 where it is none, and lines may be of any length. */
int ct_terminal_width(void);
/* Runs a prepared statement and prints its rows; an SQLite result code, 0 when all is well. As text no line
 * is longer than `width` characters, unless that is 0: long texts are cut, then columns left out and named.
 * JSON is an array, with a line's end. `rows` may be NULL. */
int ct_print_rows(struct sqlite3_stmt *statement, enum ct_format format, int width, FILE *to, int64_t *rows);
void ct_print_json_string(const char *text, size_t bytes, FILE *to);
/* Without the comma behind it. */
void ct_print_csv_field(const char *text, size_t bytes, FILE *to);

/* ---- moment.c: times as people write them ---- */

struct ct_extent {
    int64_t begin_ns, end_ns; /* CLOCK_MONOTONIC: the start of the first process, the last that is known of */
    int64_t realtime_offset_ns; /* to be added for nanoseconds since 1970 */
};
#define CT_WINDOW_HELP                                                                                       \
    "  --from T        what returned from T on, and\n"                                                       \
    "  --to T          up to T: seconds since the trace began (12.5, 350ms), before its end\n"               \
    "                  (-10s), of the day (14:03:02), or as in the database (@NANOSECONDS)\n"

/* False for a trace without a process. */
bool ct_trace_extent(struct sqlite3 *connection, struct ct_extent *extent);
/* False after reporting a text that is no moment; *at_ns is within 126 years of the clock's beginning. */
bool ct_moment_take(const char *command, const char *option, const char *text, const struct ct_extent *extent,
                    int64_t *at_ns);

/* ---- number.c ---- */

/* Digits alone; false for what is no number from `least`, which is none below 0, to `most`. */
bool ct_number_parse(const char *text, int64_t least, int64_t most, int64_t *number);
/* Digits with a point or without: how many characters that were; 0 for none. */
size_t ct_decimal_parse(const char *text, double *number);

#endif
