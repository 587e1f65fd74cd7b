/* Finds the database file that a daemon may write. The file must belong to this user and this boot, and have
 * the current schema and no other writer. Also manages the numbered files in which a trace continues. */
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
    bool is_held;     /* the write-ahead log could not be turned on because of another program's lock */
    char trace[4096]; /* the path passed to ct_store_open() */
    uint32_t number;  /* number of the current file, counted as in trace_files.h */
    char path[4096];  /* path of the current file */
    struct ct_origin origin;
    struct timespec written;      /* the file's modification time when this process last wrote it */
    char series[CT_SERIES_BYTES]; /* meta.series, which all files of the trace share */
};

/* Sets which users may read databases opened from now on. By default, only the owner may. */
void ct_database_share(const struct ct_private_readers *readers);
/* Restricts the file at `path` and SQLite's side files to the readers set by ct_database_share(). Refuses
 * other users' files. Call this for each file to be written, both before and after SQLite opens it. Returns
 * 0, or -1 with a sentence in `message`. */
int ct_database_own(const char *path, char message[CT_MESSAGE_BYTES]);
/* See ct_store_open(). */
int ct_database_open(struct ct_database *database, const char *path, const struct ct_origin *origin,
                     char message[CT_MESSAGE_BYTES]);
/* Closes the database. Leaves a single plain file without a write-ahead log, unless a reader has the file
 * open. */
void ct_database_close(struct ct_database *database);
/* Creates the file that follows `past`, and copies everything that identifies running processes. `past` must
 * not be in a transaction, and stays open. Returns 0. On failure, creates no file and returns -1 with a
 * sentence in `message`. */
int ct_database_follow(const struct ct_database *past, struct ct_database *next,
                       char message[CT_MESSAGE_BYTES]);
/* Closes and removes a file that ct_database_follow() created. */
void ct_database_discard(struct ct_database *next);
/* Opens an earlier file of the trace and sets `path`. The file is opened read-only, or for writing if it has
 * a log and `with_log` is set. Code in its schema does not run, and an endless query is aborted. Returns NULL
 * if the file does not exist, is not private, belongs to another trace, or is the current file. The caller
 * closes the connection. */
sqlite3 *ct_database_open_earlier(const struct ct_database *database, uint32_t number, bool with_log,
                                  char path[4096]);
/* Removes the oldest files of the series, but never the current one. The remaining files use at most `bytes`
 * in total, and are few enough to be read together (CT_SERIES_FILES_MAX). Each of them contains a call that
 * returned at `keep_from_ns` or later. A limit of 0 is ignored. If readers left a log next to an earlier
 * file, writes the log into that file. Passes each path to `on_removed`, with 0 or the errno for which the
 * file was not removed. */
void ct_database_prune(const struct ct_database *database, uint64_t bytes, uint64_t keep_from_ns,
                       void (*on_removed)(const char *path, int error));
/* Returns whether the path still refers to the file being written. */
bool ct_database_in_place(const struct ct_database *database);

#endif
