/* Processes, threads and functions as the ledger sees them. Each of them is created, and registered with the
 * ledger, by its owner. */
#ifndef CT_ACCOUNT_H
#define CT_ACCOUNT_H

#include "histogram.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_budget;

/* A process that makes calls. If everything except `budget` is zero, the process is new to the trace. */
struct ct_account {
    int64_t process_id, segment_id; /* segment_id is 0 for a refused segment */
    struct ct_budget *budget;       /* charged when the process's calls are taken; NULL: not charged */
    uint32_t generation;            /* the store's generation when the account was registered */
    struct ct_histogram histogram;  /* this batch's rows, durations and failures by function */
    struct ct_account_total *totals;
    uint32_t total_count;
    size_t total_room;
};

/* A function of a process. */
struct ct_callee {
    int64_t function_id; /* 0: not looked up yet */
    uint32_t total;      /* index of the function's sums in this batch, from 1; 0: none yet */
    bool is_driver;      /* the function belongs to the driver layer */
};

/* A thread. If everything except `account` and `tid` is zero, the thread has made no calls yet. */
struct ct_caller {
    struct ct_account *account;
    int64_t thread_id;         /* 0: no row yet; the first call creates it from `tid` */
    int64_t last_call_id;      /* the last call taken; a correlation refers to it; 0: none */
    uint64_t calls, driver_ns; /* in this batch */
    struct ct_known_site *known;
    uint32_t tid;
    uint32_t numbering; /* the store's numbering when `known` was set */
    uint32_t recorded;  /* the recorder's epoch when the thread was recorded */
    /* Returns the thread_id that another caller has for the same thread, or 0. The pointer is NULL if there
     * is no other caller. */
    int64_t (*find_thread)(const struct ct_caller *caller);
};

/* The names that identify a function in the trace. */
struct ct_function_name {
    const char *layer, *name, *category;
};

#endif
