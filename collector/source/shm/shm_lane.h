/* A lane as a stream of calls. Copies the records of one thread's rings to private memory piece by piece. */
#ifndef CT_SHM_LANE_H
#define CT_SHM_LANE_H

#include "shm_rings.h"

struct ct_lane_work;

/* A record's position and its thread. */
struct ct_lane_place {
    uint64_t position;
    int64_t thread_id, last_call_id; /* as in struct ct_caller */
    uint32_t tid;
};

struct ct_lane_source {
    struct ct_stream stream; /* must be first, because the merge uses only this member */
    struct ct_shm_process *process;
    struct ct_batch *batch; /* while a batch is made */
    struct ct_lane *shared;
    uint32_t index;
    struct ct_lane_rings rings;

    struct ct_caller caller;    /* the thread of the record at `read` */
    uint64_t read;              /* the next record to fill in; between batches, the next one to take */
    struct ct_lane_place saved, /* the next record to take, as saved by the last batch */
        committed;              /* the next record to take, as committed to the database */
    uint64_t waited;            /* how many slots the last batch found waiting */
    uint64_t head;              /* all records before this position are published and may be read */
    uint64_t stop_at;           /* this batch takes the records that begin before this position */

    struct ct_lane_work *work;        /* NULL while the lane is silent */
    uint64_t buffer_at, buffer_slots; /* the slots in the buffer */
    size_t clock_hint;

    uint64_t last_start; /* start of the last call taken, in ticks */
    struct {
        uint64_t ticks, ns;
    } opened[CT_OPEN_MAX]; /* start times of calls that were seen open, by depth, converted when recent */
    uint64_t silent_ns;    /* no record older than this can follow */
    uint64_t announced_at; /* the lane's position when it was found announcing */
    uint64_t announced_since_ns;
    uint64_t announced_silent_ns; /* shm->silent_ns when the lane was last found announcing */

    uint64_t last_position; /* after a detach, no producer may write past this position */
    bool ended;             /* `head` is the lane's final position, because the process has ended */

    uint32_t tenancy;
    uint64_t loss_base[CT_LOSS_COUNT]; /* losses of earlier owners */
    uint64_t loss_saved[CT_LANE_LOSS_COUNT];
    uint64_t drops; /* calls that the hook did not send, as last found by shm_drops.c */
};

/* Maps lane `index` of the process. Returns 0 or -errno. The caller must destroy the source before the
 * process's segment map. */
int ct_lane_source_create(struct ct_shm_process *process, uint32_t index, struct ct_lane_source **source);
void ct_lane_source_destroy(struct ct_lane_source *source);
/* Continues at the position saved in the database, or at the oldest record in the ring if that record is
 * newer. Returns 0 or -1. */
int ct_lane_source_begin(struct ct_lane_source *source, struct ct_ledger *ledger);

/* Returns the start time of an open call at this depth. */
uint64_t ct_lane_source_opened(struct ct_lane_source *source, uint32_t depth, uint64_t ticks);

/* Reads the lane's position, and lowers batch->until_ns so that no call published later can have returned
 * before it. */
void ct_lane_source_watermark(struct ct_lane_source *source, struct ct_batch *batch);
/* Returns the number of slots that are published but not taken. */
static inline uint64_t ct_lane_source_slots(const struct ct_lane_source *source)
{
    return source->head - source->read;
}
/* Makes the producer leave the lane. */
void ct_lane_source_detach(struct ct_lane_source *source);
/* Call after the merge. Saves the position and the losses. */
int ct_lane_source_save(struct ct_lane_source *source, struct ct_ledger *ledger);
/* Returns the fill of the rings at the start of the batch, in thousandths. */
uint32_t ct_lane_source_fill(const struct ct_lane_source *source);
/* Allows the producer to reuse the space of all calls saved by the batch. */
void ct_lane_source_publish(struct ct_lane_source *source, const struct ct_batch *batch);
void ct_lane_source_revert(struct ct_lane_source *source);
/* Returns the number of calls that are published but not stored. */
uint64_t ct_lane_source_waiting(struct ct_lane_source *source);

#endif
