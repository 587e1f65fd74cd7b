/* The rows of a process's requests to the kernel driver: the number in the segment of each kind of request.
 */
#ifndef CT_PROBE_REQUEST_ROWS_H
#define CT_PROBE_REQUEST_ROWS_H

#include "calls.h"
#include "table.h"

struct ct_segment;
/* Rows whose fields are all zero are empty. */
struct ct_request_rows {
    struct ct_table ids; /* by number space and code */
    uint32_t count;
};

/* Returns whether calls of the function are requests: CT_EVENT_ESCAPE to CT_EVENT_MODESET. */
bool ct_request_is(uint32_t function);
/* Returns the number of the request in the segment, which gets an entry for it if it has none. Returns 0 if
 * the process makes too many kinds of requests, or if the segment is full. */
uint16_t ct_request_rows_id(struct ct_request_rows *rows, struct ct_segment *segment, uint32_t function,
                            uint32_t code);
/* Returns the function under which all requests without a row in the same language are recorded. */
uint32_t ct_request_other(uint32_t function);
/* Forgets all rows, because there is another segment. */
void ct_request_rows_forget(struct ct_request_rows *rows);

#endif
