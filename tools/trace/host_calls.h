/* What the threads of a trace's processes did in the time before a call. The calls are read once, in the
 * order of their return, and the newest are kept. */
#ifndef CT_HOST_CALLS_H
#define CT_HOST_CALLS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* A call of the driver. The strings are valid until the calls are closed. Equal functions may have strings at
 * different addresses. */
struct ct_host_call {
    int64_t start_ns, end_ns;
    const char *name, *category;
};

struct ct_host_calls;

/* Opens the calls of the connection's trace. Returns NULL after reporting an error. */
struct ct_host_calls *ct_host_calls_open(sqlite3 *connection);
void ct_host_calls_close(struct ct_host_calls *calls);

/* Looks for the thread that made the call `call_id`. Then, ct_host_calls_next() returns the driver calls of
 * this thread that returned up to `call_id` and after `after_ns`, the last one first, until it returns false.
 * Is fast if `call_id` is one of the last 262,144 calls up to the largest `call_id` so far. */
void ct_host_calls_find(struct ct_host_calls *calls, int64_t call_id, int64_t after_ns);
bool ct_host_calls_next(struct ct_host_calls *calls, struct ct_host_call *call);

/* Returns SQLITE_OK, or the first error. */
int ct_host_calls_error(const struct ct_host_calls *calls);

#endif
