/* A lane as a stream of calls: reads one thread's ring into private memory, a piece at a time. */
#ifndef CT_SHM_LANE_H
#define CT_SHM_LANE_H

#include "shm_rings.h"

struct ct_lane_work;

/* A record, and the thread whose it is. */
struct ct_lane_place {
    uint64_t position;
    int64_t thread_id;
    uint32_t tid;
};

struct ct_lane_source {
    struct ct_stream stream; /* first: the merge sees this */
    struct ct_shm_process *process;
    struct ct_batch *batch; /* while one is made */
    struct ct_lane *shared;
    uint32_t index;
    struct ct_lane_rings rings;

    struct ct_caller caller;    /* the thread whose records stand at the position */
    uint64_t read;              /* the next record to fill in; between batches, to take */
    struct ct_lane_place saved, /* the next one to take, as the last batch saved it, */
        committed;              /* and as the database has it */
    uint64_t waited;            /* slots that the last batch found waiting */
    uint64_t head;              /* published: records before it may be read */
    uint64_t stop_at;           /* and those that begin before this are taken in this batch */

    struct ct_lane_work *work;        /* NULL while the lane is silent */
    uint64_t buffer_at, buffer_slots; /* which slots its buffer holds */
    size_t clock_hint;

    uint64_t last_start; /* ticks, of the last call taken */
    struct {
        uint64_t ticks, ns;
    } opened[CT_OPEN_MAX]; /* the starts of calls that were seen open, by depth: converted while it was recent
                            */
    uint64_t silent_ns;    /* no record older than this is to come */
    uint64_t announced_at; /* position at which the lane was found announcing */
    uint64_t announced_since_ns;
    uint64_t announced_silent_ns; /* shm->silent_ns when it was found so last */

    uint64_t last_position; /* detached: no producer writes further */
    bool ended;             /* head is where the process ended */

    uint32_t tenancy;
    uint64_t loss_base[CT_LOSS_COUNT]; /* what earlier owners lost */
    uint64_t loss_saved[CT_LANE_LOSS_COUNT];
    uint64_t unsent; /* calls that the hook did not send, as shm_unsent.c found them last */
};

/* Maps lane `index` of the process; 0 or -errno. It ends before the process's map does. */
int ct_lane_source_create(struct ct_shm_process *process, uint32_t index, struct ct_lane_source **source);
void ct_lane_source_destroy(struct ct_lane_source *source);
/* Goes on from where the database says, or from the beginning of what the ring has. 0 or -1. */
int ct_lane_source_begin(struct ct_lane_source *source, struct ct_ledger *ledger);

/* The time at which a call at that depth began that is seen open, or was. */
uint64_t ct_lane_source_opened(struct ct_lane_source *source, uint32_t depth, uint64_t ticks);

/* Takes the lane's position and lowers batch->until_ns to what is safe. */
void ct_lane_source_watermark(struct ct_lane_source *source, struct ct_batch *batch);
/* Slots that are published and not taken. */
static inline uint64_t ct_lane_source_slots(const struct ct_lane_source *source)
{
    return source->head - source->read;
}
/* Tells the producer to let go. */
void ct_lane_source_detach(struct ct_lane_source *source);
/* Behind the merge: saves position and losses. */
int ct_lane_source_save(struct ct_lane_source *source, struct ct_ledger *ledger);
/* How full the rings were when the batch began, in thousandths. */
uint32_t ct_lane_source_fill(const struct ct_lane_source *source);
/* Gives the producer the room of what was saved of the batch. */
void ct_lane_source_publish(struct ct_lane_source *source, const struct ct_batch *batch);
void ct_lane_source_revert(struct ct_lane_source *source);
/* Calls published and not stored. */
uint64_t ct_lane_source_waiting(struct ct_lane_source *source);

#endif
