/* Connects a call with the GPU work that it causes. CUPTI reports a call's correlation while the call is
 * open. In the lane, a note with the correlation follows the call's record (CT_KIND_CORRELATION). */
#ifndef CT_CORRELATION_H
#define CT_CORRELATION_H

#include "producer.h"

/* Notes the correlation of the calling thread's innermost open call. Returns the number of the call's
 * function, or 0 if the thread has no open call, or more than CT_OPEN_MAX. A correlation of 0 is not noted.
 * May be called in a signal handler. */
uint32_t ct_correlation_note(uint64_t correlation);
/* Writes the note if it belongs to the call just recorded at the given depth. Called only while `noted` is 1
 * and the lane is held. If the ring has no room for the note, the GPU work will not be connected with its
 * call. */
void ct_correlation_write(struct ct_producer *self, uint32_t depth);

#endif
