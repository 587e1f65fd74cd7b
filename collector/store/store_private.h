/* What the files of the store share: store.c (batches, opening), store_numbers.c (numbers given in memory),
 * merged.c (the merge as a table), store_process.c (rows about processes), expire.c (what is kept no longer),
 * demangle.c, allocations.c (which call gave back what). Nobody else includes it. */
#ifndef CT_STORE_PRIVATE_H
#define CT_STORE_PRIVATE_H

#include "clock.h"
#include "database.h"
#include "earlier.h"
#include "intern.h"
#include "row_table.h"
#include "store.h"
#include "text_numbers.h"

/* What is numbered in memory and has a row for each number. */
enum ct_number {
    CT_NUMBER_SITE,
    CT_NUMBER_SHAPE,
    CT_NUMBER_ROUTE,
    CT_NUMBER_SUBJECT,
    CT_NUMBER_TEXT,
    CT_NUMBERS
};

enum statement {
    /* The deferred ones come first, in the order of enum ct_deferred. */
    INSERT_CALLS = CT_DEFERRED_COUNT,
    INSERT_BULK, /* in the order of enum ct_bulk */
    INSERT_BULK_LAST = INSERT_BULK + CT_BULK_COUNT - 1,
    FIND_CALL,
    DOUBT_SEGMENT,
    FIND_FUNCTION,
    INSERT_FUNCTION,
    INSERT_PROCESS,
    FIND_PROCESS,
    END_PROCESS,
    FORGIVE_EARLIER_IMAGES,
    INSERT_SEGMENT,
    FIND_LANE,
    SAVE_LANE,
    FIND_LOSSES,
    SAVE_LOSS,
    SAVE_UNSENT,
    ADD_TOTAL,
    ADD_DURATION,
    ADD_FAILURE,
    INSERT_NAME,
    INSERT_KERNEL,
    FREE_RANGE,
    SUPERSEDE_LATE_ALLOCATION,
    CLEAR_OPEN_CALLS,
    INSERT_OPEN_CALL,
    SET_META,
    RUNNING,
    COUNT_PAGES,
    /* The rest is expire.c's. */
    OLDEST_CALL,
    NTH_CALL,
    COUNT_EXPIRED,
    EXPIRE_CALLS, /* and what names them by their call_id */
    EXPIRE_LAUNCHES,
    EXPIRE_TRANSFERS,
    EXPIRE_CALL_SUBJECTS,
    EXPIRE_LONG_CALLS,
    EXPIRE_LATE_CALLS,
    EXPIRE_RANGES,
    EXPIRE_GRAPHS,
    EXPIRE_GRAPH_LAUNCHES,
    EXPIRE_CALLS_LAST = EXPIRE_GRAPH_LAUNCHES,
    EXPIRE_ALLOCATIONS,
    EXPIRE_NUMBERS, /* in the order of enum ct_number */
    EXPIRE_NUMBERS_LAST = EXPIRE_NUMBERS + CT_NUMBERS - 1,
    EXPIRE_OBJECT_NAMES, /* of processes that have ended */
    EXPIRE_KERNELS,      /* of processes that have ended, like EXPIRE_LANES */
    EXPIRE_LANES,
    EXPIRE_NAMES,
    EXPIRE_THREADS,
    BEGIN,
    COMMIT,
    STATEMENT_COUNT
};

/* A call that gave back what no allocation is known for: the values of CT_FREE_ALLOCATION. */
struct ct_unmatched_free {
    int64_t value[CT_FREE_VALUES];
    char kind[16];
};
enum { CT_UNMATCHED_FREES = 256 };

struct ct_store {
    struct ct_row_table merged; /* first: merged.c */
    struct ct_row_buffer bulk[CT_BULK_COUNT];
    struct ct_database database;
    struct ct_earlier earlier;
    uint32_t log_pages; /* of the write-ahead log, where checkpoints are left to the caller */
    bool log_is_held;
    bool checkpoint_failed;
    char checkpoint_error[512];
    sqlite3_stmt *statement[STATEMENT_COUNT];
    uint32_t generation;

    struct ct_intern sites, shapes, routes, subjects;
    struct ct_texts texts;
    int64_t next_thread_id;
    int64_t numbers_from[CT_NUMBERS]; /* given since `numbered_ns`; calls stored later name no lower ones */
    uint64_t numbered_ns, swept_ns;
    bool numbers_unknown; /* what the database has could not be read: no batch until it can */

    /* Deferred statements, packed one behind the other: struct deferred, its values, its text. */
    uint8_t *deferred;
    size_t deferred_bytes, deferred_capacity;
    bool out_of_memory;
    bool broken_off;
    uint64_t effort, effort_before; /* spent since the batch began, and before the row that is being taken */

    /* The rows being stored. */
    struct ct_merge *merge;
    uint64_t rows, rows_max;
    uint64_t ordered_ns; /* rows return from here on, or are late */
    uint64_t last_id;    /* call_id of the last row in order */
    uint64_t call_id;    /* of the row being taken */
    struct ct_row row;
    struct ct_intern late; /* call_ids of the late rows of this batch */
    uint64_t late_tries;   /* to find ids for them, in this batch */
    uint64_t late_rows;
    struct ct_unmatched_free unmatched[CT_UNMATCHED_FREES]; /* the last ones; a process_id of 0: none */
    uint64_t unmatched_count;

    struct ct_demangled *demangled;
    char error[CT_STORE_MESSAGE_BYTES];
};
static_assert(offsetof(struct ct_store, merged) == 0, "merged.c");

void ct_store_numbers_init(struct ct_store *store);
void ct_store_numbers_finish(struct ct_store *store);
/* All that were given are void: they go on behind those that the database has. Where these cannot be read,
 * numbers_unknown says so. */
void ct_store_forget_numbers(struct ct_store *store);
/* Numbers are given anew from here on, behind those given so far. */
void ct_store_renumber(struct ct_store *store);
/* Notes what SQLite says is wrong; -1. */
int ct_store_failed(struct ct_store *store);
/* Binds integers to a statement, CT_NULL as NULL, and returns it. */
sqlite3_stmt *ct_store_bind(struct ct_store *store, int which, size_t values, const int64_t *value);
/* A list of integers as two arguments: how many, and the array. */
/* clang-format off */
#define VALUES(...) sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), (const int64_t[]){ __VA_ARGS__ }
/* clang-format on */
/* Binds text that stays until the statement has run; NULL as the empty text. */
void ct_store_bind_text(sqlite3_stmt *statement, size_t place, const char *text);
/* As sqlite3_step(), for ct_store_failed() to tell the system's reason. */
int ct_store_step(sqlite3_stmt *statement);
/* Runs a statement; its first row's first column, if it returns one, goes to *result, which may be NULL. 0 or
 * -1. */
int ct_store_run(struct ct_store *store, sqlite3_stmt *statement, int64_t *result);

/* Run the deferred statements of these names: allocations.c. */
int ct_store_free_allocation(struct ct_store *store, const int64_t *value, const char *kind);
int ct_store_settle_late_allocation(struct ct_store *store, const int64_t *value);

/* Makes store->merged the calls of store->merge. */
void ct_merged_calls_init(struct ct_store *store);

#endif
