/* The traced functions, one row each: its real address, its number in the segment, and how to trace a
 * call. */
#ifndef CT_ROWS_H
#define CT_ROWS_H

#include "compiler.h"
#include "machine.h"
#include "segment.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The runtime's functions in the order of the table, and the number of libcudart versions that have a stub
 * for each. */
enum {
#define ROW(name, category, stack_words, decoder) CT_RUNTIME_##name,
#include "runtime_api.def"
#undef ROW
    CT_RUNTIME_FUNCTIONS,
    CT_RUNTIME_VERSIONS = 3
};

/* Recorded images of the driver in one process. Calls of the second are recorded without details. */
enum { CT_DRIVERS = 2 };

/* Row numbers: the driver's functions in order, the runtime's in order for each version, the driver's again
 * for a second image, and then the fallback stubs. */
enum {
#define ROW(name, category, stack_words, decoder) CT_ROW_##name,
#include "driver_api.def"
#undef ROW
    CT_ROW_COUNT, /* the driver's rows */
    CT_SECOND_FIRST = CT_ROW_COUNT + CT_RUNTIME_VERSIONS * CT_RUNTIME_FUNCTIONS,
    CT_NAMED_COUNT = CT_SECOND_FIRST + CT_ROW_COUNT,
    CT_FALLBACK_COUNT = 128,
    CT_STUB_COUNT = CT_NAMED_COUNT + CT_FALLBACK_COUNT,
    CT_LIBRARY_DLSYM = CT_STUB_COUNT, /* not a row: returned by look-ups of the C library's dlsym */
    /* Rows without a stub, for calls traced by other means than the trampoline. */
    CT_EXTRA_COUNT = 768,
    CT_ROWS_ALL = CT_STUB_COUNT + CT_EXTRA_COUNT
};

#define CT_DRIVER_ROW(driver, function)   (((driver) ? CT_SECOND_FIRST : 0U) + (function))
#define CT_RUNTIME_ROW(version, function) (CT_ROW_COUNT + (version)*CT_RUNTIME_FUNCTIONS + (function))

/* Stack words passed on for a function with an unknown signature, as far as the caller has them. */
enum { CT_FALLBACK_STACK_WORDS = 16 };

enum ct_row_flags {
    CT_ROW_DECODED = 1,    /* it has a decoder */
    CT_ROW_PER_THREAD = 2, /* a _ptsz or _ptds form: the null stream is the thread's own */
    CT_ROW_NO_STATUS = 4,  /* it returns a text */
    CT_ROW_ASKS = 8,       /* it only queries, and changes nothing */
};

/* Two rows fit one cache line. `enter_id` and `leave_id` equal `id` if the fast path in entry.c may be taken,
 * and are 0 otherwise. */
struct ct_row {
    void *real; /* NULL if the driver lacks it */
    uint64_t reserved0;
    /* Stored with release once the directory entry is written. Loaded with acquire by ct_enter(). */
    _Atomic uint16_t id;       /* index in the segment's directory, 0 if not called yet */
    _Atomic uint16_t enter_id; /* 0 unless the counter is the clock */
    _Atomic uint16_t leave_id; /* also 0 if there is a decoder, or not every call is recorded */
    uint8_t stack_words;
    uint8_t flags; /* enum ct_row_flags */
    uint8_t category;
    uint8_t layer;            /* enum ct_layer */
    _Atomic uint8_t skipped;  /* 1: counted and not recorded */
    uint8_t intercept;        /* enum ct_intercept; for a slot, `real` is the slot's original content */
    _Atomic uint16_t wrap_id; /* as leave_id, but ignores decoders: for wrappers that read arguments */
    _Atomic uint16_t skip_id; /* 0 unless the counter is the clock, no decoder, each call left out */
};
static_assert(sizeof(struct ct_row) == 32, "trampoline; two rows a cache line");
static_assert(offsetof(struct ct_row, enter_id) == 18, "trampoline");

extern CT_LOCAL struct ct_row ct_rows[CT_ROWS_ALL];

/* True if calls of the row are low-priority when they are short and succeed. Those are dropped first from a
 * ring that is nearly full. Queries are low-priority regardless of their category. */
static inline bool ct_row_says_little(const struct ct_row *row)
{
    return row->flags & CT_ROW_ASKS || !ct_category_says_more(row->category);
}

/* ct_row_name() returns the name recorded, ct_row_symbol() the name exported. A function called by compiled
 * code is recorded under the name in the program's source. */
const char *ct_row_name(uint32_t row);
const char *ct_row_symbol(uint32_t row);
/* Returns the flags that follow from a function's name. */
uint8_t ct_row_form(const char *name);
/* Return the row of a driver's function by name, or of the runtime's first version. CT_ROWS_ALL if the table
 * has no such name. */
uint32_t ct_row_of_driver(const char *name);
uint32_t ct_row_of_runtime(const char *name);
/* Returns the row with that layer and name among those without a stub, creating it if needed. CT_ROWS_ALL if
 * they are used up. The search is linear, so the caller keeps the result. `name` is copied. */
uint32_t ct_row_extra(enum ct_layer layer, uint8_t category, const char *name);
/* Returns the row of a fallback stub for `real`, named `name`, and the same row for the same pointer.
 * CT_ROWS_ALL if they are used up. */
uint32_t ct_row_fallback(void *real, const char *name);

/* The places of the stubs. The trampoline's file writes them in row order into a section of its own: each
 * stub's distance from its entry, 0 for no stub. The linker defines the section's start. */
extern CT_LOCAL const int32_t __start_ct_stubs[];
/* Returns a row's stub, NULL if the architecture has none. For a function of the runtime, returns the entry
 * that does not check the caller. */
static inline void *ct_row_stub(uint32_t row)
{
    const int32_t *entry = &__start_ct_stubs[row];
    return *entry ? (void *)((uintptr_t)entry + (uintptr_t)(intptr_t)*entry) : NULL;
}

#endif
