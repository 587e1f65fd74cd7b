/* Rows about processes: themselves, their segments, lanes, functions, sums, losses and open calls. Each is
 * written at once, inside the batch's transaction. 0 or -1, identifiers through pointers. */
#ifndef CT_PROCESS_ROWS_H
#define CT_PROCESS_ROWS_H

#include "tally.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_store;

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

/* More than the calls of nine years at a million a second; and thirty-six years, or an exabyte: sums of a few
 * of these are numbers to SQLite still. */
#define CT_UNSENT_CALLS_MAX (UINT64_C(1) << 48)
#define CT_UNSENT_SUM_MAX   (UINT64_C(1) << 60)

struct ct_loss_facts {
    uint32_t lane, tenancy, tid, cause;
    uint64_t calls, first_ns, last_ns;
};
int ct_store_save_loss(struct ct_store *store, int64_t segment_id, const struct ct_loss_facts *facts);

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

#endif
