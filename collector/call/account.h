/* Processes, threads and functions as the ledger keeps them. Their owners create them and register them with
 * the ledger. */
#ifndef CT_ACCOUNT_H
#define CT_ACCOUNT_H

#include "histogram.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_budget;

/* A process that makes calls. It is new to the trace if everything except `budget` is zero. */
struct ct_account {
    int64_t process_id, segment_id; /* segment_id is 0 for a refused segment */
    struct ct_budget *budget;       /* charged for taking its calls; NULL: not charged */
    uint32_t generation;            /* the store's generation at its registration */
    struct ct_histogram histogram;  /* counts this batch's rows by function, with durations and failures */
    struct ct_account_total *totals;
    uint32_t total_count;
    size_t total_room;
};

/* A function of a process. */
struct ct_callee {
    int64_t function_id; /* 0: not looked up yet */
    uint32_t total;      /* index of its sums in this batch, from 1; 0: none yet */
    bool is_driver;      /* it belongs to the driver's layer */
};

/* A thread. It has not called yet if everything except `account` and `tid` is zero. */
struct ct_caller {
    struct ct_account *account;
    int64_t thread_id;         /* 0: created from `tid` at the first call */
    uint64_t calls, driver_ns; /* in this batch */
    struct ct_known_site *known;
    uint32_t tid;
    uint32_t numbering; /* `known` is valid for this numbering of the store */
    uint32_t recorded;  /* the recorder's epoch when the thread was recorded */
};

/* The trace's names for a function. */
struct ct_function_name {
    const char *layer, *name, *category;
};

#endif
