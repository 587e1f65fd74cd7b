/* The database, written in one transaction per batch. SQLite's codes are not passed on to callers. All
 * functions except open run on the worker thread. */
#ifndef CT_STORE_H
#define CT_STORE_H

#include "message.h"
#include "origin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_store;

/* Opens or creates the database at `path`. If the database belongs to another boot, opens the next numbered
 * file in the same folder. If a trace has continued in numbered files, opens the newest of them. Returns 0,
 * or -1 with a sentence for the user in `message`. On failure, writes nothing. */
int ct_store_open(const char *path, const char *session, struct ct_store **store,
                  char message[CT_MESSAGE_BYTES]);
/* Does the same as ct_store_open() for calls that were recorded elsewhere. A database belongs to another boot
 * if its boot differs from the boot in `origin`. */
int ct_store_open_of(const char *path, const struct ct_origin *origin, struct ct_store **store,
                     char message[CT_MESSAGE_BYTES]);
/* Checkpoints and closes. `store` may be NULL. */
void ct_store_close(struct ct_store *store);
/* Leaves checkpoints to the caller: commits no longer make them. */
void ct_store_leave_checkpoints(struct ct_store *store);
enum { CT_STORE_PAGE_BYTES = 4096 };
/* Returns the length of the write-ahead log after the last commit, in pages. Valid only if checkpoints were
 * left to the caller. */
uint32_t ct_store_log_pages(const struct ct_store *store);
/* Returns whether the last checkpoint had to leave out a part of the log, because a reader needs the old
 * contents. */
bool ct_store_log_is_held(const struct ct_store *store);
/* Copies the log into the database as far as readers allow. Returns whether it copied the whole log. */
bool ct_store_checkpoint(struct ct_store *store);
/* Logs a message if another program has written the file. Call before copying the log, while no other thread
 * copies it. */
void ct_store_check_written(struct ct_store *store);
/* Returns why the last checkpoint failed, or NULL if it succeeded. The text is valid until the next
 * checkpoint. */
const char *ct_store_checkpoint_error(const struct ct_store *store);
/* Returns the path of the current file, which is valid until ct_store_close() or ct_store_go_on(). */
const char *ct_store_path(const struct ct_store *store);
/* Returns the path of the trace's first file, with a link resolved. It never changes. */
const char *ct_store_trace(const struct ct_store *store);
/* Returns the number of the current file within the trace, from 1. */
uint32_t ct_store_file(const struct ct_store *store);
/* Begins a run: processes that are stored from now on belong to it. May be called by any thread. Opening the
 * store begins a run, too. */
void ct_store_begin_run(struct ct_store *store);
/* Continues in the trace's next file. Must not be called between begin and commit. Invalidates all IDs, as a
 * rollback does. Returns 0, or -1 with the error set. After an error, the trace continues in the current
 * file. */
int ct_store_go_on(struct ct_store *store);
/* See ct_database_prune(). */
void ct_store_prune(struct ct_store *store, uint64_t bytes, uint64_t keep_from_ns,
                    void (*on_removed)(const char *path, int error));
/* Returns the size of the current file in bytes, including the part of the log that has not been copied into
 * it yet. */
uint64_t ct_store_bytes(struct ct_store *store);
/* Returns the last error as a sentence. The text is valid until the next call. */
const char *ct_store_error(const struct ct_store *store);
/* Sets the error "out of memory", for a caller that could not allocate memory. */
void ct_store_short_of_memory(struct ct_store *store);

/* ---- a batch: begin, then any other functions, then commit; after an error, roll back ---- */

int ct_store_begin(struct ct_store *store);
int ct_store_commit(struct ct_store *store);
/* Starts committing the batch in a thread, so that the next batch can be made at the same time. The next
 * batch waits for this commit before it accesses the database or ends. */
int ct_store_commit_start(struct ct_store *store);
/* Returns whether ct_store_commit_start() can commit this batch: the thread must exist, and the next batch
 * must not need data from this one. */
bool ct_store_may_commit_start(const struct ct_store *store);
/* Starts the thread for ct_store_commit_start(), if possible. */
void ct_store_commit_by_thread(struct ct_store *store);
/* Sets a function that is called after each commit made by the thread, before the next batch accesses the
 * database. */
void ct_store_on_committed(struct ct_store *store, void (*on_committed)(void *data), void *data);
/* Returns whether the thread has finished its commit, so that ct_store_commit_wait() (statements.h) returns
 * the result without waiting. */
bool ct_store_commit_is_done(const struct ct_store *store);
/* Undoes everything since begin, including a failed commit in progress. Invalidates all IDs and increments
 * `generation`. */
void ct_store_rollback(struct ct_store *store);
uint32_t ct_store_generation(const struct ct_store *store);

/* Aborts the batch because a row could not be taken: no further rows are taken, and the batch fails. The
 * caller must have set the error. */
void ct_store_break_off(struct ct_store *store);
bool ct_store_is_broken_off(const struct ct_store *store);

#endif
