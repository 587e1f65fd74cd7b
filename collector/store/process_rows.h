/* Rows about processes, and about their segments, lanes, functions, sums, losses and open calls. Each is
 * written at once, in the batch's transaction. Functions return 0 or -1, and identifiers through pointers. */
#ifndef CT_PROCESS_ROWS_H
#define CT_PROCESS_ROWS_H

#include "fact.h"
#include "histogram.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_store;

/* Recordings contain this struct and the two about losses in this layout. A process starts with its first
 * segment, at started_ns. */
struct ct_process_numbers {
    uint64_t start_ticks, exec_ns, started_ns; /* started_ns: of the segment */
    uint64_t absent_ns; /* start of a gap before it, when calls may be missing; 0: no gap */
    int64_t changed_ns; /* creation or later change of the segment's file */
    int32_t pid;
    uint32_t uid;
};
struct ct_process_facts {
    struct ct_process_numbers is;
    const char *exe, *cmdline, *segment;
};
/* Makes the rows of a process and a segment. Refuses a segment that has the same name as another process's
 * segment, or that was made after the process had ended. Then writes nothing and sets *segment_id to 0. */
int ct_store_process(struct ct_store *store, const struct ct_process_facts *facts, int64_t *process_id,
                     int64_t *segment_id);
/* A process that the database lists as running, or as left by a daemon. */
struct ct_running {
    int64_t process_id;
    int32_t pid;
    uint64_t start_ticks;
    const char *segment; /* name of its newest segment; NULL: it has none */
    bool is_left;
};
/* Calls `each` for each of these processes, until a call returns nonzero. */
int ct_store_each_running(struct ct_store *store, int (*each)(const struct ct_running *running, void *data),
                          void *data);

/* Finds the saved position and the thread of a lane. Leaves *position, *thread_id and *tid unchanged if the
 * lane is new. */
int ct_store_find_lane(struct ct_store *store, int64_t segment_id, uint32_t lane, uint64_t *position,
                       int64_t *thread_id, uint32_t *tid);
/* Adds the losses of earlier owners of the lane to lost[cause], which has CT_LOSS_COUNT entries. */
int ct_store_find_losses(struct ct_store *store, int64_t segment_id, uint32_t lane, uint32_t tenancy,
                         uint64_t *lost);

/* The first is a million calls per second for almost nine years. The second is thirty-six years in
 * nanoseconds, or an exabyte. A sum of a few of these is still an integer in SQLite. */
#define CT_UNSENT_CALLS_MAX (UINT64_C(1) << 48)
#define CT_UNSENT_SUM_MAX   (UINT64_C(1) << 60)

int ct_store_fact(struct ct_store *store, const struct ct_fact *fact);
int ct_store_set_meta(struct ct_store *store, const char *key, int64_t value);

#endif
