/* Writes and reads rows about processes, and about their segments, lanes, functions, sums, losses and open
 * calls. Each row is written immediately, in the batch's transaction. Functions return 0 or -1, and return
 * IDs through pointers. */
#ifndef CT_PROCESS_ROWS_H
#define CT_PROCESS_ROWS_H

#include "fact.h"
#include "histogram.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_caller;
struct ct_store;

/* The layout of this struct is part of the recording format. A process starts at started_ns, with its first
 * segment. */
struct ct_process_numbers {
    uint64_t start_ticks, exec_ns, started_ns; /* started_ns: when the segment was created */
    uint64_t absent_ns; /* start of a gap before started_ns, in which calls may be missing; 0: no gap */
    int64_t changed_ns; /* when the segment's file was created or last changed */
    int32_t pid;
    uint32_t uid;
};
struct ct_process_facts {
    struct ct_process_numbers is;
    const char *exe, *cmdline, *segment;
};
/* Creates the rows of a process and a segment. A segment is refused if it has the same name as another
 * process's segment, or was created after the process had ended. In that case, nothing is written, and
 * *segment_id is set to 0. */
int ct_store_process(struct ct_store *store, const struct ct_process_facts *facts, int64_t *process_id,
                     int64_t *segment_id);
/* A process that the database lists as running, or as still running when a daemon left it. */
struct ct_running {
    int64_t process_id;
    int32_t pid;
    uint64_t start_ticks;
    const char *segment; /* name of the process's newest segment; NULL: none */
    bool is_left;
};
/* Calls `each` for each process that the database lists as running or as left, until `each` returns
 * nonzero. */
int ct_store_each_running(struct ct_store *store, int (*each)(const struct ct_running *running, void *data),
                          void *data);

/* Finds a lane's saved position, and sets the caller's thread and its last call before that position. Leaves
 * *position and *caller unchanged if the lane is new. */
int ct_store_find_lane(struct ct_store *store, int64_t segment_id, uint32_t lane, uint64_t *position,
                       struct ct_caller *caller);
/* Adds the losses of the lane's earlier owners to lost[cause], which has CT_LOSS_COUNT entries. */
int ct_store_find_losses(struct ct_store *store, int64_t segment_id, uint32_t lane, uint32_t tenancy,
                         uint64_t *lost);

/* CT_UNSENT_CALLS_MAX is a million calls per second for almost nine years. CT_UNSENT_SUM_MAX is thirty-six
 * years in nanoseconds, or an exabyte. A few such numbers still add up to an integer in SQLite. */
#define CT_UNSENT_CALLS_MAX (UINT64_C(1) << 48)
#define CT_UNSENT_SUM_MAX   (UINT64_C(1) << 60)

int ct_store_fact(struct ct_store *store, const struct ct_fact *fact);
int ct_store_set_meta(struct ct_store *store, const char *key, int64_t value);

#endif
