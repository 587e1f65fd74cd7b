/* The path of a call through the hook, divided into parts that can be omitted. The paths are defined in
 * hook_parts_paths.c, and hook_parts.c measures them. */
#ifndef CT_HOOK_PARTS_H
#define CT_HOOK_PARTS_H

#include "lane.h"
#include "producer.h"
#include "rows.h"

/* The parts of wrap.c. */
enum part {
    PART_COUNTERS = 1,   /* the two reads of the counter */
    PART_LOOKUP = 2,     /* what the trampoline looks up: the row, the row's number, the producer */
    PART_DEPTH = 4,      /* the thread's own stack of open calls */
    PART_OPEN = 8,       /* the open call in the lane */
    PART_STATE = 16,     /* announcing and publishing */
    PART_RECORD = 32,    /* the record in the ring */
    PART_GUARD = 64,     /* the checks of `idle`, of the room and of the doorbell */
    PART_PREFETCH = 128, /* prefetching the ring's next lines */
    PART_ALL = 255,
};

/* Each path has a name and a set of parts. Up to `whole`, each path adds a part to the previous path. Each of
 * the remaining paths omits one part. */
#define HOOK_PATHS(PATH)                                                                                     \
    PATH(trampoline, 0)                                                                                      \
    PATH(and_counters, PART_COUNTERS)                                                                        \
    PATH(and_lookup, PART_COUNTERS | PART_LOOKUP)                                                            \
    PATH(and_depth, PART_COUNTERS | PART_LOOKUP | PART_DEPTH)                                                \
    PATH(and_open_call, PART_COUNTERS | PART_LOOKUP | PART_DEPTH | PART_OPEN)                                \
    PATH(and_state, PART_COUNTERS | PART_LOOKUP | PART_DEPTH | PART_OPEN | PART_STATE)                       \
    PATH(and_record, PART_ALL & ~PART_GUARD & ~PART_PREFETCH)                                                \
    PATH(and_guard, PART_ALL & ~PART_PREFETCH)                                                               \
    PATH(whole, PART_ALL)                                                                                    \
    PATH(without_counters, PART_ALL & ~PART_COUNTERS)                                                        \
    PATH(without_lookup, PART_ALL & ~PART_LOOKUP)                                                            \
    PATH(without_depth, PART_ALL & ~PART_DEPTH)                                                              \
    PATH(without_open_call, PART_ALL & ~PART_OPEN)                                                           \
    PATH(without_state, PART_ALL & ~PART_STATE)                                                              \
    PATH(without_record, PART_ALL & ~PART_RECORD)                                                            \
    PATH(without_guard, PART_ALL & ~PART_GUARD)                                                              \
    PATH(without_prefetch, PART_ALL & ~PART_PREFETCH)

/* A function like cuCtxGetCurrent(), which runs the path's trampoline and then parts_bare(). */
#define DECLARE_PATH(name, parts) int parts_##name(void **context);
HOOK_PATHS(DECLARE_PATH)
#undef DECLARE_PATH

int parts_bare(void **context);
/* The producer is not at the beginning of its page, just as in the hook's pool
 * (hook/lane/producer_pool.c). */
extern struct parts_page {
    _Alignas(4096) uint8_t apart[192];
    struct ct_producer producer;
} parts_page;
/* Fills in the function's row, and the producer's lane and ring. `slots` must be a power of two. */
void parts_begin(struct ct_lane *lane, uint8_t *ring, uint64_t slots);

#endif
