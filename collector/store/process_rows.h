/* Rows about processes: themselves, their segments, lanes, functions, sums, losses and open calls. Each is
 * written at once, inside the batch's transaction. 0 or -1, identifiers through pointers. */
#ifndef CT_PROCESS_ROWS_H
#define CT_PROCESS_ROWS_H

#include "tally.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_store;

/* This and the facts of losses stand in recordings as they are here. */
struct ct_process_numbers {
    uint64_t start_ticks, image_ns, started_ns; /* started_ns: of the segment, with which a process begins */
    uint64_t absent_ns;                         /* since when calls may be missing before it, 0: none is */
    int64_t changed_ns;                         /* when the segment's file was made, or changed later */
    int32_t pid;
    uint32_t uid;
};
struct ct_process_facts {
    struct ct_process_numbers is;
    const char *exe, *cmdline, *segment;
};
/* A segment that has the name of another process's, or was made when the process had ended, is refused:
 * *segment_id is 0 then, and nothing is written. */
int ct_store_process(struct ct_store *store, const struct ct_process_facts *facts, int64_t *process_id,
                     int64_t *segment_id);
/* A process that the database has as running, or as left by a daemon. */
struct ct_running {
    int64_t process_id;
    int32_t pid;
    uint64_t start_ticks;
    const char *segment; /* its newest one's name, NULL without any */
    bool is_left;
};
/* Calls `each` for all of them, until one call does not return 0. */
int ct_store_each_running(struct ct_store *store, int (*each)(const struct ct_running *running, void *data),
                          void *data);

/* Notes that a process runs on, and that its calls from `since_ns` on are in no segment that is collected. */
int ct_store_leave_process(struct ct_store *store, int64_t process_id, uint64_t since_ns);

/* Finds how far a lane was read, and whose it was. Leaves all three alone when the lane is new. */
int ct_store_find_lane(struct ct_store *store, int64_t segment_id, uint32_t lane, uint64_t *position,
                       int64_t *thread_id, uint32_t *tid);
/* Adds the calls that earlier owners of the lane lost to lost[cause], which has CT_LOSS_COUNT. */
int ct_store_find_losses(struct ct_store *store, int64_t segment_id, uint32_t lane, uint32_t tenancy,
                         uint64_t *lost);

/* More than the calls of nine years at a million a second; and thirty-six years, or an exabyte: sums of a few
 * of these are numbers to SQLite still. */
#define CT_UNSENT_CALLS_MAX (UINT64_C(1) << 48)
#define CT_UNSENT_SUM_MAX   (UINT64_C(1) << 60)

struct ct_loss_facts {
    int64_t segment_id;
    uint32_t lane, tenancy, tid, cause;
    uint64_t calls, first_ns, last_ns;
};
int ct_store_save_loss(struct ct_store *store, const struct ct_loss_facts *facts);

struct ct_unsent_facts {
    int64_t segment_id, function_id;
    uint64_t entry; /* the function's in the segment's directory: two may have one name */
    uint64_t lost, lost_ns, lost_bytes, skipped, skipped_ns, skipped_bytes;
};

int ct_store_set_meta(struct ct_store *store, const char *key, int64_t value);

#endif
