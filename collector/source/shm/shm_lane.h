/* A lane as a source of the merge: reads one thread's ring into private memory, a piece at a time. */
#ifndef CT_LANE_SOURCE_H
#define CT_LANE_SOURCE_H

#include "shm_process.h"

struct ct_lane_work;

struct ct_lane_source {
    struct ct_source source; /* first: the merge sees this */
    struct ct_process *process;
    struct ct_batch *batch; /* while one is made */
    struct ct_lane *shared;
    uint32_t index;
    uint64_t ring_slots; /* that the ring may have, */
    uint64_t capacity;   /* and that it has, as far as its slots were read */

    struct ct_lane_place place;     /* the next record to take, and whose it is */
    struct ct_lane_place committed; /* the same, as the database has it */
    uint64_t head;                  /* published: records before it may be read */
    uint64_t stop_at;               /* and those that begin before this are taken in this batch */

    struct ct_lane_work *work;        /* NULL while the lane is silent */
    uint64_t buffer_at, buffer_slots; /* of its buffer */
    struct ct_record record; /* the next call, once peeked */
    bool peeked;
    size_t clock_hint;

    uint64_t last_start; /* ticks, of the last call taken */
    struct {
        uint64_t ticks, ns;
    } opened[CT_OPEN_MAX]; /* the starts of calls that were seen open, by depth: converted while it was recent
                            */
    uint64_t silent_ns;    /* no record older than this is to come */
    uint64_t announced_at; /* position at which the lane was found announcing */
    uint64_t announced_since_ns;
    uint64_t announced_silent_ns; /* batch->silent_ns when it was found so last */

    uint64_t last_position; /* detached: no producer writes further */
    bool ended;             /* head is where the process ended */

    struct {
        uint64_t calls, driver_ns;
    } sums; /* of place.thread_id, in this batch */

    uint32_t tenancy;
    uint64_t loss_base[CT_LOSS_COUNT]; /* of earlier owners */
    uint64_t loss_saved[CT_LOSS_COUNT];
};

/* Maps lane `index` of the process; 0 or -errno. It ends before the process's map does. */
int ct_lane_source_create(struct ct_process *process, uint32_t index, struct ct_lane_source **source);
void ct_lane_source_destroy(struct ct_lane_source *source);

/* The payload behind the record that is being taken: slots - 1 slots. */
const void *ct_lane_source_payload(const struct ct_lane_source *source);

/* The time at which a call at that depth began that is seen open, or was. */
uint64_t ct_lane_source_opened(struct ct_lane_source *source, uint32_t depth, uint64_t ticks);

/* Takes the lane's position and lowers batch->until_ns to what is safe. */
void ct_lane_source_watermark(struct ct_lane_source *source, struct ct_batch *batch);
/* Tells the producer to let go. */
void ct_lane_source_detach(struct ct_lane_source *source);
/* Saves position and losses. */
int ct_lane_source_save(struct ct_lane_source *source, struct ct_batch *batch);
/* Gives the producer its room back. How full the ring was when the batch began, in thousandths. */
uint32_t ct_lane_source_publish(struct ct_lane_source *source, bool idle);
/* Numbers of sites that the store gave are void. */
void ct_lane_source_forget_sites(struct ct_lane_source *source);
void ct_lane_source_revert(struct ct_lane_source *source);
/* Calls published and not stored. */
uint64_t ct_lane_source_waiting(const struct ct_lane_source *source);

#endif
