/* The buffers for CUPTI's activity records. CUPTI requests and returns buffers in any thread, also in a
 * signal handler of the program, so that buffers need neither a lock nor an allocation. */
#ifndef CT_BUFFERS_H
#define CT_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Allocates the buffers, once. Returns false if out of memory. */
bool ct_buffers_begin(void);
/* Returns a free buffer and its size, or NULL if there is none. CUPTI then counts its records as dropped. */
uint8_t *ct_buffers_take(size_t *bytes);
/* Takes a buffer back, whose first `valid` bytes contain records. */
void ct_buffers_give(uint8_t *buffer, size_t valid);
/* Calls `read` for each buffer that has been given back, and frees the buffer. */
void ct_buffers_read(void (*read)(uint8_t *buffer, size_t valid, void *data), void *data);

#endif
