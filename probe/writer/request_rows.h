/* Rows for a process's requests to the kernel driver. Each row contains the ID of one kind of request in the
 * segment's directory. */
#ifndef CT_PROBE_REQUEST_ROWS_H
#define CT_PROBE_REQUEST_ROWS_H

#include "calls.h"
#include "ioctl_layout.h"
#include "table.h"

struct ct_segment;
/* A row is empty if all of its fields are zero. */
struct ct_request_rows {
    struct ct_table ids; /* by number space and code */
    uint32_t count;
};

/* Returns whether calls of the function are requests, that is, whether it is in the range from
 * CT_EVENT_ESCAPE to CT_EVENT_MODESET. */
bool ct_request_is(uint32_t function);
/* Returns the number space of a function's requests. ct_request_is() is true for the function. */
enum ct_ioctl_space ct_request_space(uint32_t function);
/* Returns the number of the request in the segment, after adding an entry to the segment if necessary.
 * Returns 0 if the process makes too many kinds of requests, or if the segment is full. */
uint16_t ct_request_rows_id(struct ct_request_rows *rows, struct ct_segment *segment, uint32_t function,
                            uint32_t code);
/* Returns the function under which a request without a row is recorded, together with all others in the same
 * language. */
uint32_t ct_request_other(uint32_t function);
/* Forgets all rows. Must be called when there is a new segment. */
void ct_request_rows_forget(struct ct_request_rows *rows);

#endif
