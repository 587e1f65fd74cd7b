/* Builds the events of a frame of a recording in memory, as dump.h lays them out. */
#ifndef CT_DUMP_BUFFER_H
#define CT_DUMP_BUFFER_H

#include "dump.h"

#include <stdbool.h>

/* All zero is an empty one. */
struct ct_dump_buffer {
    uint8_t *frame; /* room for its head, then the events */
    size_t used;    /* bytes of the frame with its head; 0 while it has no event */
    size_t capacity;
};

/* Adds an event, and zeros up to its end. Returns the room for its tail, at most 65,535 bytes, or NULL
 * without memory: the buffer is as it was then. */
uint8_t *ct_dump_add(struct ct_dump_buffer *buffer, enum ct_dump_type type, const void *body,
                     size_t tail_bytes);
/* Adds one whose tail is texts, of which there are as many as its type has. Returns false without memory. */
bool ct_dump_add_texts(struct ct_dump_buffer *buffer, enum ct_dump_type type, const void *body,
                       const char *const *text);
/* Fills in the head of a frame that has an event. Its events lie behind it until the buffer is changed. */
const struct ct_dump_frame *ct_dump_seal(struct ct_dump_buffer *buffer, uint64_t until_ns);
void ct_dump_buffer_finish(struct ct_dump_buffer *buffer);

#endif
