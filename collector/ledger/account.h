/* Processes, threads and functions as the ledger keeps them: their owners make them, and let it know of them.
 */
#ifndef CT_ACCOUNT_H
#define CT_ACCOUNT_H

#include "process_rows.h"

struct ct_budget;

/* A process that calls. All zero but for `budget` is one that the trace does not know yet. */
struct ct_account {
    int64_t process_id, segment_id; /* segment_id is 0 of one that was refused */
    struct ct_budget *budget;       /* is charged for taking its calls; NULL: nothing is charged */
    uint32_t generation;            /* the store's generation in which it was registered */
    struct ct_tally tally;          /* counts the rows of this batch by function: durations and failures */
    struct ct_account_total *totals;
    uint32_t total_count;
    size_t total_room;
};

/* A function of a process. */
struct ct_callee {
    int64_t function_id; /* 0: to be looked up */
    uint32_t total;      /* place of its sums in this batch, from 1; 0: it has none yet */
    bool is_driver;      /* its layer is the driver's */
};

/* A thread. All zero but for `account` and `tid` is one that has not called yet. */
struct ct_caller {
    struct ct_account *account;
    int64_t thread_id;         /* 0: to be made of `tid` at the first call */
    uint64_t calls, driver_ns; /* in this batch */
    struct ct_known_site *known;
    uint32_t tid;
    uint32_t numbering; /* the store's numbering in which `known` holds */
    uint32_t recorded;  /* when the recording was told of it */
};

/* Says how the trace names a function. */
struct ct_function_name {
    const char *layer, *name, *category;
};

#endif
