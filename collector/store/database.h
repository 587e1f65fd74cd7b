/* Finding the database file that a daemon may write: ours, of this boot, of a schema that we know, and nobody
 * else's at the moment; and the files that a trace goes on in. */
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
    int lock_fd;      /* holds the lock of the one writer; closed after the connection */
    bool is_held;     /* another program's lock kept the write-ahead log from being turned on */
    char trace[4096]; /* as ct_store_open() was told */
    uint32_t number;  /* number of the file in use, as trace_files.h counts them */
    char path[4096];  /* its name */
    struct ct_origin origin;
    struct timespec written;      /* the file's time of change when this process wrote it last */
    char series[CT_SERIES_BYTES]; /* meta.series: all files of the trace have it */
};

/* Says who may read the databases that are opened from here on: their owner alone unless this is called. */
void ct_database_share(const struct ct_private_readers *readers);
/* Makes the file at `path`, and what SQLite keeps beside it, readable for those alone; refuses what somebody
 * else put there. For each file that is written: before SQLite opens it, and once it has. 0, or -1 with a
 * sentence. */
int ct_database_own(const char *path, char message[CT_MESSAGE_BYTES]);
/* As ct_store_open() says. */
int ct_database_open(struct ct_database *database, const char *path, const struct ct_origin *origin,
                     char message[CT_MESSAGE_BYTES]);
/* Leaves one plain file, without a write-ahead log, unless a reader has it open. */
void ct_database_close(struct ct_database *database);
/* Makes the file that comes behind `past`, which is not in a transaction, with all that its running processes
 * are known by. `past` stays open. 0, or -1 with a sentence in `message`, and no file. */
int ct_database_follow(const struct ct_database *past, struct ct_database *next,
                       char message[CT_MESSAGE_BYTES]);
/* Closes and removes a file that ct_database_follow() made and that is not to be used. */
void ct_database_discard(struct ct_database *next);
/* Opens an earlier file of the trace, whose name goes to `path`, read-only, or to be written where `with_log`
 * is set and it has a log. Nothing that its schema brings along runs, and no query without end. NULL for what
 * is not there, not ours alone, no file of this trace, or the one in use. The caller closes it. */
sqlite3 *ct_database_open_earlier(const struct ct_database *database, uint32_t number, bool with_log,
                                  char path[4096]);
/* Takes away the oldest files of the series that `database` goes on, until what is left has at most `bytes`
 * and can be read as one (CT_SERIES_FILES_MAX), and each file has a call that returned at `keep_from_ns` or
 * later; 0 for no such bound. What readers have left in logs of earlier files is written into them. The file
 * in use stays. What is removed is told to `on_removed`. */
void ct_database_prune(const struct ct_database *database, uint64_t bytes, uint64_t keep_from_ns,
                       void (*on_removed)(const char *path));
/* Returns whether the file that is written is still the one of that name. */
bool ct_database_in_place(const struct ct_database *database);
/* Returns what SQLite says is wrong, with the system's reason where there is one: errno, which the caller has
 * set to 0 before. Valid until the thread's next call. */
const char *ct_database_problem(sqlite3 *connection);

#endif
