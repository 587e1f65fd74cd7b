/* What the files of tools/ share. */
#ifndef CT_CUDATRACE_H
#define CT_CUDATRACE_H

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
    char shm_dir[144];    /* where the session's files are, absolute; CT_SHM_DIR_BYTES */
    bool shm_dir_given;   /* by --shm-dir */
};

#define CT_SHM_DIR_HELP                                                                                      \
    "  --shm-dir DIR   where its shared memory is (default: $CUDATRACE_SHM_DIR, or /dev/shm)\n"

/* A command: gets the arguments behind its name, argv[0] being the name. Returns the exit status. */
typedef int ct_command(int argc, char **argv);
ct_command ct_run, ct_sql, ct_report, ct_flush, ct_set, ct_status, ct_stop, ct_doctor, ct_gc;

/* "cudatrace: …" and a line's end on standard error; returns the status. */
int ct_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

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

/* Connects and asks; for commands that are no more than a question. The answer's first line goes to `answer`,
 * the rest is left to the caller. -1 after reporting. */
int ct_client_question(const struct ct_options *options, const char *line, char *answer, size_t bytes);
/* A connection to the session's daemon, or -1 when none serves it: this user's own first, then the system's,
 * as the hook looks. */
int ct_client_connect(const struct ct_options *options);
/* To the user's own alone. */
int ct_client_connect_own(const struct ct_options *options);
/* The same by its socket's path. */
int ct_client_connect_path(const char *path);
/* Sends a line and reads the answer's first line into `answer`, without its end. False when the daemon went
 * away, or is stopped; a busy one is waited for. */
bool ct_client_ask(int fd, const char *line, char *answer, size_t bytes);
/* Why a daemon did not answer, to go behind "the daemon"; valid until the next call. */
const char *ct_client_why(int fd);
/* Whether the daemon's process is stopped, by a signal or a debugger. */
bool ct_client_is_stopped(int fd);
/* Copies what is left of the answer. */
void ct_client_copy(int fd, FILE *to);

/* ---- printable.c: text of unknown origin ---- */

/* A copy, to be freed, with what would steer a terminal written as \n, \t or \xNN: control characters, marks
 * of direction, bytes that are no UTF-8. NULL without memory. */
char *ct_printable(const char *text, size_t bytes);
/* The character at `text`, of `bytes` at most, and its length; 0 where there is none. */
size_t ct_utf8_next(const char *text, size_t bytes, uint32_t *point);

/* ---- query.c: databases and results ---- */

struct sqlite3;
struct sqlite3_stmt;
enum ct_format { CT_FORMAT_TABLE, CT_FORMAT_CSV, CT_FORMAT_JSON, CT_FORMAT_COUNT };

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
/* Its name for SQLite, for a connection that takes URIs. */
void ct_trace_file_uri(const char *path, char *uri, size_t bytes);
/* Opens the trace read-only, all its files as one; NULL after reporting. */
struct sqlite3 *ct_trace_open(const struct ct_options *options);
/* False for a name that is no format. */
bool ct_format_parse(const char *name, enum ct_format *format);
/* Nothing but reading from here on, whatever a query or the schema of the file asks for. */
void ct_trace_confine(struct sqlite3 *connection);
/* Queries that take long fail from here on: for looks at what a trace has one row of. In a file of somebody's
 * making it may be a view without end. */
void ct_trace_hurry(struct sqlite3 *connection);
/* Runs a prepared statement and prints its rows; an SQLite result code, 0 when all is well. */
int ct_print_rows(struct sqlite3_stmt *statement, enum ct_format format, FILE *to);

#endif
