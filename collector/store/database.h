/* Finds the database file that a daemon may write: ours, of this boot, with a schema that we know, and not in
 * use by another writer. Also manages the files that a trace continues in. */
#ifndef CT_DATABASE_H
#define CT_DATABASE_H

#include "message.h"
#include "origin.h"
#include "private_file.h"
#include "trace_files.h"

#include <sqlite3.h>
#include <time.h>

struct ct_database {
    sqlite3 *connection;
    int lock_fd;      /* holds the writer's lock; closed after the connection */
    bool is_held;     /* another program's lock prevented turning the write-ahead log on */
    char trace[4096]; /* the path passed to ct_store_open() */
    uint32_t number;  /* number of the current file, as counted in trace_files.h */
    char path[4096];  /* path of the current file */
    struct ct_origin origin;
    struct timespec written;      /* the file's modification time when this process last wrote it */
    char series[CT_SERIES_BYTES]; /* meta.series, which all files of the trace share */
};

/* Sets which users may read databases that are opened from now on. By default, only the owner may. */
void ct_database_share(const struct ct_private_readers *readers);
/* Restricts the file at `path` and SQLite's side files to these readers, and refuses files that belong to
 * other users. Call it for each file to be written, both before and after SQLite opens it. Returns 0, or -1
 * with a sentence in `message`. */
int ct_database_own(const char *path, char message[CT_MESSAGE_BYTES]);
/* See ct_store_open(). */
int ct_database_open(struct ct_database *database, const char *path, const struct ct_origin *origin,
                     char message[CT_MESSAGE_BYTES]);
/* Leaves a single plain file without a write-ahead log, unless a reader has it open. */
void ct_database_close(struct ct_database *database);
/* Makes the file that follows `past`, with everything that identifies running processes. `past` must not be
 * in a transaction, and stays open. Returns 0, or -1 with a sentence in `message` and no file. */
int ct_database_follow(const struct ct_database *past, struct ct_database *next,
                       char message[CT_MESSAGE_BYTES]);
/* Closes and removes a file made by ct_database_follow(). */
void ct_database_discard(struct ct_database *next);
/* Opens an earlier file of the trace and sets `path`. Opens it read-only, or for writing if it has a log and
 * `with_log` is set. Code in the file's schema does not run, and an endless query is aborted. Returns NULL if
 * the file does not exist, is not private, belongs to another trace, or is the current file. The caller
 * closes the connection. */
sqlite3 *ct_database_open_earlier(const struct ct_database *database, uint32_t number, bool with_log,
                                  char path[4096]);
/* Removes the oldest files of the series, but never the current one. The remaining files have at most `bytes`
 * together, and can be read together (CT_SERIES_FILES_MAX). Each of them has a call that returned at
 * `keep_from_ns` or later. A limit of 0 is ignored. If readers left a log next to an earlier file, writes the
 * log into that file. Passes each removed path to `on_removed`. */
void ct_database_prune(const struct ct_database *database, uint64_t bytes, uint64_t keep_from_ns,
                       void (*on_removed)(const char *path));
/* Returns whether the path still leads to the file being written. */
bool ct_database_in_place(const struct ct_database *database);
/* Returns SQLite's error message, with the system's reason from errno if there is one. The caller must have
 * set errno to 0 before. Valid until the thread's next call. */
const char *ct_database_problem(sqlite3 *connection);

#endif
