/* Reads the events of a trace in Chrome's Trace Event Format into a table, and pairs the beginnings and the
 * ends of events. */
#ifndef CT_CHROME_EVENTS_H
#define CT_CHROME_EVENTS_H

#include "dropped.h"
#include "interner.h"
#include "json_elements.h"
#include "json_value.h"

#define CT_CHROME_NO_PHASE '\0'
#define CT_CHROME_NOT_YET  INT64_MAX

struct ct_chrome_event {
    int64_t start_ns, end_ns; /* CT_CHROME_NOT_YET: not ended */
    int64_t place, below;     /* offset in the file; index of the enclosing open event, or -1 */
    size_t bytes;
    int64_t thread; /* the number of its process and thread */
    uint8_t depth;
    bool is_call;
    char phase; /* CT_CHROME_NO_PHASE: not stored */
};

/* Identifies the GPU event that belongs to a launch. */
struct ct_chrome_kernel {
    int64_t correlation, place;
    size_t bytes;
};

struct ct_chrome {
    struct ct_json_elements from;
    struct ct_dropped *dropped;
    struct ct_interner threads;
    struct ct_chrome_event *event;
    size_t events, room;
    struct ct_chrome_kernel *kernel;
    size_t kernels, kernel_room;
    json_t *open;    /* maps a thread's or an asynchronous event's key to the index of its open event */
    int64_t base_ns; /* origin of the clock that `ts` uses; 0: unknown */
    bool is_own;
    bool is_short; /* out of memory */
};

/* Reads the whole document. Returns false if it is truncated or is not JSON. The caller sets `from`,
 * `dropped`, `threads` and `open` first, and frees everything. */
bool ct_chrome_read(struct ct_chrome *chrome);
/* Returns the layer of a call, or NULL if the event is not a call. */
const char *ct_chrome_layer(const char *category, const char *name);

#endif
