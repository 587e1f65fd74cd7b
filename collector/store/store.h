/* The database: opened, checked, written in one transaction a batch. SQLite's codes end here. All functions
 * but open run on the worker thread. */
#ifndef CT_STORE_H
#define CT_STORE_H

#include "tally.h"

#include "merge.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_store;

enum { CT_STORE_MESSAGE_BYTES = 4096 + 512 };

/* Opens or creates the database at `path`, or, where that one belongs to another boot, the next numbered file
 * beside it; a trace that has gone on in numbered files, its newest. 0, or -1 with a sentence for the user in
 * `message`; then nothing was written. */
int ct_store_open(const char *path, const char *session, struct ct_store **store,
                  char message[CT_STORE_MESSAGE_BYTES]);
/* Checkpoints and closes; NULL is fine. */
void ct_store_close(struct ct_store *store);
/* From now on no commit makes a checkpoint, and the caller has to. */
void ct_store_leave_checkpoints(struct ct_store *store);
enum { CT_STORE_PAGE_BYTES = 4096 };
/* Pages of the write-ahead log behind the last commit, once its checkpoints were left to the caller. */
uint32_t ct_store_log_pages(const struct ct_store *store);
/* Whether the last checkpoint could not copy all of it, since a reader still needs what was there before. */
bool ct_store_log_is_held(const struct ct_store *store);
/* Copies the log into the database as far as readers let it; true when that was all of it. */
bool ct_store_checkpoint(struct ct_store *store);
/* Why the last one failed, valid until the next; NULL when it did not. */
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
/* What the file in use has, or will have when its log is written into it. */
uint64_t ct_store_bytes(struct ct_store *store);
/* What went wrong last, as a sentence; valid until the next call. */
const char *ct_store_error(const struct ct_store *store);
/* Whether the batch has as many details as it may: what is taken next belongs to another one. */
bool ct_store_is_full(const struct ct_store *store);
/* Notes that memory is short, for a caller that found so itself. */
void ct_store_short_of_memory(struct ct_store *store);

/* ---- a batch: begin, then any of the rest, then commit; after an error roll back ---- */

int ct_store_begin(struct ct_store *store);
int ct_store_commit(struct ct_store *store);
/* Everything since begin is undone, and all numbers handed out are forgotten: `generation` counts up. */
void ct_store_rollback(struct ct_store *store);
uint32_t ct_store_generation(const struct ct_store *store);

/* Stores what the merge yields, at most `rows_max` rows; *rows says how many. A merge that still has rows is
 * gone on with in the next batch. */
int ct_store_calls(struct ct_store *store, struct ct_merge *merge, uint64_t rows_max, uint64_t *rows);
/* The call_id that the row being taken will have: for the deferred statements of its details. */
uint64_t ct_store_call_id(const struct ct_store *store);
/* And whether later ones are stored already. */
bool ct_store_is_late(const struct ct_store *store);
/* What came up while a row was taken failed, and the store has said what: no further row is, and the batch
 * fails. */
void ct_store_break_off(struct ct_store *store);
/* What rows have cost since the last ct_store_calls() took one, in rows of plain calls. */
uint64_t ct_store_effort(const struct ct_store *store);
uint64_t ct_store_late_rows(const struct ct_store *store);

/* What ct_store_expire() did. */
struct ct_expired {
    uint64_t rows;   /* calls */
    bool more;       /* there are more to take away now */
    bool renumbered; /* numbers that ct_store_site() and its like have given are void from now on */
};
/* Takes away calls that returned before `before_ns`, the oldest `rows_max` at most, with all that is known of
 * them, in a transaction of its own: never between begin and commit. What is looked for more rarely is when
 * `now_ns` is a second on. 0, or -1; then roll back. */
int ct_store_expire(struct ct_store *store, uint64_t now_ns, uint64_t before_ns, uint64_t rows_max,
                    struct ct_expired *expired);

/* Statements that are deferred to the end of the batch, in their order, since they come up while rows are
 * being stored. Integers first, then a text where the statement has one. */
enum ct_deferred {
    CT_INSERT_SITE,
    CT_INSERT_THREAD,
    CT_NAME_OBJECT,   /* process_id, role, handle, named_ns; the name */
    CT_NAME_THREAD,   /* process_id, tid; the name */
    CT_ADD_TO_THREAD, /* thread_id, calls, driver_ns */
    CT_INSERT_SHAPE,
    CT_INSERT_GRAPH,
    CT_INSERT_GRAPH_LAUNCH,
    CT_INSERT_ROUTE,
    CT_INSERT_ALLOCATION,
    CT_SUPERSEDE_ALLOCATION,
    CT_FREE_ALLOCATION, /* process_id, address, start_ns, call_id, bytes, CT_FREE_SLACK_NS; the kind */
    CT_SETTLE_LATE_ALLOCATION,
    CT_SHARE_ALLOCATION,
    CT_INSERT_SHARED_ALLOCATION,
    CT_SIZE_ALLOCATION, /* process_id, address, bytes: of one whose size was not known */
    CT_INSERT_SUBJECT,
    CT_INSERT_TEXT,  /* text_id; the text */
    CT_INSERT_RANGE, /* call_id, message, domain and category as text_id, category, color, range_id; the
                        payload in decimal, empty for none */
    CT_INSERT_LATE_CALL,
    CT_MARK_LATE_CALL,
    CT_DEFINE_KERNEL, /* process_id, number; the mangled name */
    CT_DEFERRED_COUNT
};
enum { CT_FREE_VALUES = 6, CT_FREE_SLACK_NS = 20000 };
#define CT_NULL INT64_MIN /* as a value: NULL */
/* A word that may be anything, as a value that is not NULL: the one that a statement takes for NULL goes as
 * its neighbour. */
static inline int64_t ct_stored(uint64_t word)
{
    return (int64_t)word == CT_NULL ? CT_NULL + 1 : (int64_t)word;
}
void ct_store_defer(struct ct_store *store, enum ct_deferred statement, size_t values, const int64_t *value,
                    const char *text);

/* Rows of the tables that get one for a good part of all calls; stored at the end of the batch. */
enum ct_bulk {
    CT_BULK_LAUNCH,       /* call_id, shape_id, process_id */
    CT_BULK_TRANSFER,     /* call_id, route_id, source, destination */
    CT_BULK_CALL_SUBJECT, /* call_id, subject_id */
    CT_BULK_LONG_CALL,    /* call_id, start_ns */
    CT_BULK_COUNT
};
void ct_store_add(struct ct_store *store, enum ct_bulk table, const int64_t *value);

/* Numbers for combinations; the row that explains a new one is deferred. 0 when memory is short. */
int64_t ct_store_site(struct ct_store *store, int64_t thread_id, int64_t function_id, uint32_t depth,
                      int32_t status);
int64_t ct_store_thread(struct ct_store *store, int64_t process_id, uint32_t tid, const char *name);

enum { CT_SHAPE_VALUES = 11, CT_ROUTE_VALUES = 5, CT_SUBJECT_VALUES = 8 };
/* process_id, kernel, grid, block, shared_bytes, stream, captured */
int64_t ct_store_shape(struct ct_store *store, const int64_t value[CT_SHAPE_VALUES]);
/* process_id, enum ct_transfer_kind, async, stream, captured */
int64_t ct_store_route(struct ct_store *store, const int64_t value[CT_ROUTE_VALUES], const char *kind);
/* process_id, captured, then enum ct_role and handle of three objects */
int64_t ct_store_subject(struct ct_store *store, const int64_t value[CT_SUBJECT_VALUES]);

/* A text that an application made up, NUL-terminated UTF-8. */
int64_t ct_store_text(struct ct_store *store, const char *text);

/* ---- rows about processes, written at once; 0 or -1, identifiers through pointers ---- */

struct ct_process_facts {
    int32_t pid;
    uint32_t uid;
    uint64_t start_ticks, image_ns, started_ns; /* started_ns: of the segment, with which a process begins */
    uint64_t absent_ns;                         /* since when calls may be missing before it, 0: none is */
    int64_t changed_ns;                         /* when the segment's file was made, or changed later */
    const char *exe, *cmdline, *segment;
};
/* A segment that has the name of another process's, or was made when the process had ended, is refused:
 * *segment_id is 0 then, and nothing is written. */
int ct_store_process(struct ct_store *store, const struct ct_process_facts *facts, int64_t *process_id,
                     int64_t *segment_id);
int ct_store_end_process(struct ct_store *store, int64_t process_id, uint64_t ended_ns, const char *state);
/* A process that the database has as running. */
struct ct_running {
    int64_t process_id;
    int32_t pid;
    uint64_t start_ticks;
    const char *segment; /* its newest one's name, NULL without any */
};
/* Ends those that do not go on: how they went is not known. *going_on says how many do, where all were asked;
 * NULL is fine. 0 or -1. */
int ct_store_end_orphans(struct ct_store *store, uint64_t now_ns,
                         bool (*goes_on)(const struct ct_running *running, const void *data),
                         const void *data, uint64_t *going_on);
/* 0 in *function_id where the trace has none of that name. */
int ct_store_find_function(struct ct_store *store, const char *layer, const char *name, int64_t *function_id);
/* The number of a function, which is written if it is new. This and the other may be asked while calls are
 * stored. */
int ct_store_function(struct ct_store *store, const char *layer, const char *name, const char *category,
                      int64_t *function_id);

struct ct_lane_place {
    uint64_t position;
    int64_t thread_id; /* 0: none yet */
    uint32_t tid;
};
/* Leaves *place alone when the lane is new. */
int ct_store_find_lane(struct ct_store *store, int64_t segment_id, uint32_t lane,
                       struct ct_lane_place *place);
int ct_store_save_lane(struct ct_store *store, int64_t segment_id, uint32_t lane,
                       const struct ct_lane_place *place);
/* Calls lost by earlier owners of the lane, added to lost[cause]. */
int ct_store_find_losses(struct ct_store *store, int64_t segment_id, uint32_t lane, uint32_t tenancy,
                         uint64_t *lost);

struct ct_loss_facts {
    int64_t segment_id;
    uint32_t lane, tenancy, tid, cause;
    uint64_t calls, first_ns, last_ns;
};
int ct_store_save_loss(struct ct_store *store, const struct ct_loss_facts *facts);

struct ct_unsent_facts {
    uint64_t lost, lost_ns, lost_bytes, skipped, skipped_ns, skipped_bytes;
};
/* `entry` is the function's in the segment's directory: two may have one name. */
int ct_store_save_unsent(struct ct_store *store, int64_t segment_id, uint32_t entry, int64_t function_id,
                         const struct ct_unsent_facts *facts);

struct ct_total_facts {
    uint64_t calls, total_ns, min_ns, max_ns, bytes, failed;
};
int ct_store_add_total(struct ct_store *store, int64_t process_id, int64_t function_id,
                       const struct ct_total_facts *facts);

/* So many more calls of the bucket, see ct_duration_bucket(). */
int ct_store_add_duration(struct ct_store *store, int64_t process_id, int64_t function_id, uint32_t bucket,
                          const struct ct_tally_count *count);
/* So many more calls that returned the status. */
int ct_store_add_failure(struct ct_store *store, int64_t process_id, int64_t function_id, int32_t status,
                         const struct ct_tally_count *count);

int ct_store_clear_open_calls(struct ct_store *store, int64_t process_id);
int ct_store_open_call(struct ct_store *store, int64_t process_id, int64_t thread_id, uint32_t depth,
                       int64_t function_id, uint64_t start_ns);
int ct_store_set_meta(struct ct_store *store, const char *key, int64_t value);

/* Names of enum ct_loss_cause. */
extern const char *const ct_loss_cause_name[];

#endif
