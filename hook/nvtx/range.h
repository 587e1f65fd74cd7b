/* The calling thread's ranges and marks. */
#ifndef CT_RANGE_H
#define CT_RANGE_H

#include "range_text.h"

/* Finds the rows for ranges and marks. Returns false if a row is not available. */
bool ct_range_begin(void);

/* ct_range_push() and ct_range_pop() return the range's level in its thread and domain, counted from 0. Both
 * return CT_NVTX_NO_PUSH_POP_TRACKING if out of memory, if there is no range to pop, or in a signal handler
 * that interrupted either function. `frame` has the same meaning as in struct ct_said. */
int ct_range_push(const struct ct_said *said);
int ct_range_pop(uint32_t domain, const void *frame);
void ct_range_mark(const struct ct_said *said);

/* Holds the calling thread's memory for ranges until ct_range_release(). Returns NULL if out of memory, or in
 * a signal handler that interrupted the code that holds the memory. If it returns NULL, *cause is the cause
 * of loss to record. */
struct ct_range_thread *ct_range_hold(const void *frame, enum ct_loss_cause *cause);
void ct_range_release(struct ct_range_thread *thread);
char *ct_range_room(struct ct_range_thread *thread); /* CT_RANGE_MESSAGE_BYTES */
/* Writes the record of a range that ends now. `thread` must be held. */
void ct_range_record(struct ct_range_thread *thread, struct ct_producer *producer, uint32_t row,
                     const struct ct_range_kept *kept, uint32_t depth, uint64_t id);
/* Returns the number of calls and ranges that are open around `frame`, or 0 if the thread has no lane. */
uint32_t ct_range_depth(struct ct_producer *producer, const void *frame);
/* ct_range_epoch() returns the epoch of the segment that `producer` writes to, which is stored in a range
 * that starts now. ct_range_lasts() returns whether a kept range belongs to that segment. */
uint32_t ct_range_epoch(const struct ct_producer *producer);
bool ct_range_lasts(const struct ct_range_kept *kept, const struct ct_producer *producer);

#endif
