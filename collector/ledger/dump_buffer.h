/* Builds the events of a recording's frame in memory, in the layout that dump.h defines. */
#ifndef CT_DUMP_BUFFER_H
#define CT_DUMP_BUFFER_H

#include "dump.h"

#include <stdbool.h>

/* A zeroed struct is empty. */
struct ct_dump_buffer {
    uint8_t *frame; /* room for the frame's head, followed by the events */
    size_t used;    /* bytes including the head; 0 if there is no event */
    size_t capacity;
};

/* Adds an event and pads it with zeros. Returns the address at which the caller must write the event's tail
 * of at most 65,535 bytes. If out of memory, returns NULL and leaves the buffer unchanged. */
uint8_t *ct_dump_add(struct ct_dump_buffer *buffer, enum ct_dump_type type, const void *body,
                     size_t tail_bytes);
/* Adds an event whose tail consists of strings. The event's type determines the number of strings. Returns
 * false if out of memory. */
bool ct_dump_add_texts(struct ct_dump_buffer *buffer, enum ct_dump_type type, const void *body,
                       const char *const *text);
/* Fills in the head of a frame, which must contain at least one event. The events follow the head in memory
 * until the buffer changes. */
const struct ct_dump_frame *ct_dump_seal(struct ct_dump_buffer *buffer, uint64_t until_ns);
void ct_dump_buffer_finish(struct ct_dump_buffer *buffer);

#endif
