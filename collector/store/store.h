/* The database: opened, checked, written in one transaction a batch. SQLite's codes end here. All functions
 * but open run on the worker thread. */
#ifndef CT_STORE_H
#define CT_STORE_H

#include "message.h"
#include "origin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_store;

/* Opens or creates the database at `path`, or, where that one belongs to another boot, the next numbered file
 * beside it; a trace that has gone on in numbered files, its newest. 0, or -1 with a sentence for the user in
 * `message`; then nothing was written. */
int ct_store_open(const char *path, const char *session, struct ct_store **store,
                  char message[CT_MESSAGE_BYTES]);
/* The same for what was recorded elsewhere: a database of another boot than that is another one's. */
int ct_store_open_of(const char *path, const struct ct_origin *origin, struct ct_store **store,
                     char message[CT_MESSAGE_BYTES]);
/* Checkpoints and closes; NULL is fine. */
void ct_store_close(struct ct_store *store);
/* Leaves checkpoints to the caller: no commit makes one from now on. */
void ct_store_leave_checkpoints(struct ct_store *store);
enum { CT_STORE_PAGE_BYTES = 4096 };
/* Pages of the write-ahead log behind the last commit, once its checkpoints were left to the caller. */
uint32_t ct_store_log_pages(const struct ct_store *store);
/* Returns whether the last checkpoint left part of the log, since a reader needs what was there before. */
bool ct_store_log_is_held(const struct ct_store *store);
/* Copies the log into the database as far as readers let it; true when that was all of it. */
bool ct_store_checkpoint(struct ct_store *store);
/* Before anything of the log is copied, while no other thread copies: logs, if another program has written
 * the file. */
void ct_store_check_written(struct ct_store *store);
/* Returns why the last checkpoint failed, valid until the next; NULL when it did not. */
const char *ct_store_checkpoint_error(const struct ct_store *store);
/* The file in use; valid until close or ct_store_go_on(). */
const char *ct_store_path(const struct ct_store *store);
/* Its number among the files of the trace, from 1. */
uint32_t ct_store_file(const struct ct_store *store);
/* Goes on in the trace's next file; never between begin and commit. All numbers handed out are forgotten, as
 * after a rollback. 0, or -1: then it goes on in this one, and ct_store_error() says why. */
int ct_store_go_on(struct ct_store *store);
/* As ct_database_prune(). */
void ct_store_prune(struct ct_store *store, uint64_t bytes, uint64_t keep_from_ns,
                    void (*on_removed)(const char *path));
/* Returns the bytes that the file in use has, or will have when its log is written into it. */
uint64_t ct_store_bytes(struct ct_store *store);
/* Says what went wrong last, as a sentence; valid until the next call. */
const char *ct_store_error(const struct ct_store *store);
/* Notes that memory is short, for a caller that found so itself. */
void ct_store_short_of_memory(struct ct_store *store);

/* ---- a batch: begin, then any of the rest, then commit; after an error roll back ---- */

int ct_store_begin(struct ct_store *store);
int ct_store_commit(struct ct_store *store);
/* Instead of committing: has a thread commit the batch while the next one is begun and made. What that one
 * reads or writes of the database, and its own end, waits for it. */
int ct_store_commit_start(struct ct_store *store);
/* Returns whether this batch may: there is such a thread, and nothing that the next one would have to know.
 */
bool ct_store_may_commit_start(const struct ct_store *store);
/* Starts that thread, if there is one to be had. */
void ct_store_commit_by_thread(struct ct_store *store);
/* Has it called once a batch was committed so, before the next one does anything with the database. */
void ct_store_on_committed(struct ct_store *store, void (*on_committed)(void *data), void *data);
/* Returns whether the thread is done; ct_store_commit_wait(), statements.h's, then says how it went. */
bool ct_store_commit_is_done(const struct ct_store *store);
/* Everything since begin is undone, and what had left and failed; all numbers handed out are forgotten:
 * `generation` counts up. */
void ct_store_rollback(struct ct_store *store);
uint32_t ct_store_generation(const struct ct_store *store);

/* Breaks the batch off: something failed while a row was taken, and the store has said what. No further row
 * is taken, and the batch fails. */
void ct_store_break_off(struct ct_store *store);
bool ct_store_is_broken_off(const struct ct_store *store);

#endif
