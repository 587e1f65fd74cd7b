/* The table of probed functions, which begins with the kernel events (enum ct_probe_event). Records from the
 * kernel refer to a function by its number in the table. */
#ifndef CT_PROBE_FUNCTIONS_H
#define CT_PROBE_FUNCTIONS_H

#include "calls.h"
#include "fields.h"
#include "rows.h"
#include "segment.h"

#include <stdbool.h>

/* A field in the records of a hook or of a kernel event. */
struct ct_function_field {
    char name[CT_FIELD_NAME_MAX + 1];
    uint8_t type; /* enum ct_field_type */
    uint8_t text; /* of texts: the index among the record's texts */
};

struct ct_function_entry {
    char name[CT_FUNCTION_NAME_MAX + 1];
    uint32_t row;      /* rows.h; CT_ROWS_ALL for a function that driver_api.def lacks */
    uint32_t category; /* enum ct_category */
    uint32_t layer;    /* enum ct_layer */
    bool is_minor;     /* when a ring is nearly full, short calls that succeed are dropped first */
    uint32_t fields;   /* of hooks and of events of fences; CT_FIELDS_MAX at most */
    struct ct_function_field field[CT_FIELDS_MAX];
};

/* Memory that the probe shares with its writers. An entry is complete before any record refers to it, and
 * never changes afterwards. */
struct ct_function_table {
    uint32_t count;
    /* For each channel, 1 until its process has a segment. The value is set before the BPF programs' notice
     * of a new process is consumed, or before the probe assigns the channel to a process that it has found
     * itself. If all notices have been consumed, and then all values are 0, every process that has made a
     * call has a segment. */
    uint8_t arriving[CT_PROBE_PROCESSES];
    /* For each channel, the call that the writer has taken from the ring but not written yet, as its function
     * number plus 1. If the writer is killed, its replacement counts this call as lost. */
    uint32_t in_flight[CT_PROBE_PROCESSES];
    /* For each channel, 1 if code of its process's driver has no breakpoints (CT_SEGMENT_COPIED). */
    uint8_t copied[CT_PROBE_PROCESSES];
    const struct ct_probe_shape *shapes; /* by row */
    struct ct_function_entry entry[CT_PROBE_FUNCTIONS];
};

/* Returns whether driver_api.def contains a function called `name`. */
bool ct_functions_is_known(const char *name);

/* Returns NULL if out of memory. */
struct ct_function_table *ct_functions_create(void);
/* Returns the shape of the function's arguments. */
const struct ct_probe_shape *ct_functions_shape(const struct ct_function_table *table, uint32_t number);
/* Returns the number of a driver function, after adding it to the table if necessary. Returns
 * CT_PROBE_FUNCTIONS if the table is full. For functions that are not in driver_api.def, it is full earlier.
 */
uint32_t ct_functions_number(struct ct_function_table *table, const char *name);
/* Adds a hook of the category, whose name need not be unique. Returns its number, or CT_PROBE_FUNCTIONS if
 * the table is full. */
uint32_t ct_functions_add_hook(struct ct_function_table *table, const char *name, uint8_t category,
                               const struct ct_function_field *field, uint32_t fields);

#endif
