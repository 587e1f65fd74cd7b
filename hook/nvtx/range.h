/* Ranges and marks of the calling thread. */
#ifndef CT_RANGE_H
#define CT_RANGE_H

#include "range_text.h"

/* Finds the rows of the functions under which they are recorded; false when there is none for one of them. */
bool ct_range_begin(void);

/* The level of the range in its thread and domain, from 0; CT_NVTX_NO_PUSH_POP_TRACKING when there is none to
 * pop, and in a signal handler that interrupted one of these functions. `frame` as in struct ct_said. */
int ct_range_push(const struct ct_said *said);
int ct_range_pop(uint32_t domain, const void *frame);
void ct_range_mark(const struct ct_said *said);

/* The calling thread's room to work in, held until given back; NULL without memory, and when a signal handler
 * has interrupted its own thread, which *cause tells. */
struct ct_range_thread *ct_range_hold(const void *frame, enum ct_loss_cause *cause);
void ct_range_release(struct ct_range_thread *thread);
char *ct_range_room(struct ct_range_thread *thread); /* CT_RANGE_MESSAGE_BYTES */
/* Writes the record of a range that ends now. `thread` is held. */
void ct_range_record(struct ct_range_thread *thread, struct ct_producer *producer, uint32_t row,
                     const struct ct_range_kept *kept, uint32_t depth, uint64_t id);
/* Calls and ranges that are open around `frame`; 0 without a lane. */
uint32_t ct_range_depth(const struct ct_producer *producer, const void *frame);
/* The segment that `producer` writes to, as a range that starts now remembers it; and whether one that was
 * kept is of that segment. */
uint32_t ct_range_epoch(const struct ct_producer *producer);
bool ct_range_lasts(const struct ct_range_kept *kept, const struct ct_producer *producer);

#endif
