/* The traced functions. Each has a row, which contains the function's real address, its number in the
 * segment, and how its calls are traced. */
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

/* The runtime functions in the order of the table. Each function has a stub for each of the
 * CT_RUNTIME_VERSIONS versions of libcudart. */
enum {
#define ROW(name, category, stack_words, decoder) CT_RUNTIME_##name,
#include "runtime_api.def"
#undef ROW
    CT_RUNTIME_FUNCTIONS,
    CT_RUNTIME_VERSIONS = 3
};

/* The number of driver images recorded in one process. Calls to the second image are recorded without
 * details. */
enum { CT_DRIVERS = 2 };

/* Row numbers. The driver functions come first, followed by the runtime functions for each version, the
 * driver functions again for a second image, and the fallback stubs. */
enum {
#define ROW(name, category, stack_words, decoder) CT_ROW_##name,
#include "driver_api.def"
#undef ROW
    CT_ROW_COUNT, /* the driver's rows */
    CT_SECOND_FIRST = CT_ROW_COUNT + CT_RUNTIME_VERSIONS * CT_RUNTIME_FUNCTIONS,
    CT_NAMED_COUNT = CT_SECOND_FIRST + CT_ROW_COUNT,
    CT_FALLBACK_COUNT = 128,
    CT_STUB_COUNT = CT_NAMED_COUNT + CT_FALLBACK_COUNT,
    CT_LIBRARY_DLSYM = CT_STUB_COUNT, /* not a row; its stub is returned when the C library's dlsym is looked
                                       * up */
    /* Rows without a stub, for calls that are traced without the trampoline. */
    CT_EXTRA_COUNT = 768,
    CT_ROWS_ALL = CT_STUB_COUNT + CT_EXTRA_COUNT
};

#define CT_DRIVER_ROW(driver, function)   (((driver) ? CT_SECOND_FIRST : 0U) + (function))
#define CT_RUNTIME_ROW(version, function) (CT_ROW_COUNT + (version)*CT_RUNTIME_FUNCTIONS + (function))

/* The number of stack words to forward to a function with an unknown signature. If the caller's stack
 * contains fewer words, only those are forwarded. */
enum { CT_FALLBACK_STACK_WORDS = 16 };

enum ct_row_flags {
    CT_ROW_DECODED = 1,    /* the function has a decoder */
    CT_ROW_PER_THREAD = 2, /* a _ptsz or _ptds variant, whose null stream is the calling thread's own */
    CT_ROW_NO_STATUS = 4,  /* does not return a status */
    CT_ROW_ASKS = 8,       /* only queries, and changes nothing */
};

/* Two rows fit in one cache line. `enter_id` and `leave_id` equal `id` if the fast path in entry.c may be
 * taken, and are 0 otherwise. */
struct ct_row {
    void *real; /* NULL if the driver lacks the function */
    uint64_t reserved0;
    /* Stored with release once the directory entry has been written, and loaded with acquire by
     * ct_enter(). */
    _Atomic uint16_t id; /* index in the segment's directory; 0 if not called yet */
    _Atomic uint16_t enter_id;
    _Atomic uint16_t leave_id; /* also 0 if there is a decoder, or if some calls are not recorded */
    uint8_t stack_words;
    uint8_t flags; /* enum ct_row_flags */
    uint8_t category;
    uint8_t layer;            /* enum ct_layer */
    _Atomic uint8_t skipped;  /* 1: calls are counted but not recorded */
    uint8_t intercept;        /* enum ct_intercept; for a slot, `real` is the slot's original content */
    _Atomic uint16_t wrap_id; /* like leave_id, but nonzero if there is a decoder; for wrappers that read
                               * arguments */
    _Atomic uint16_t skip_id; /* 0 unless there is no decoder, and all calls are left out */
};
static_assert(sizeof(struct ct_row) == 32, "trampoline; two rows a cache line");
static_assert(offsetof(struct ct_row, enter_id) == 18, "trampoline");

extern CT_LOCAL struct ct_row ct_rows[CT_ROWS_ALL];

/* True if the row's calls are low-priority, provided they are short and succeed. When a ring is nearly full,
 * low-priority calls are dropped before others. Queries are low-priority regardless of their category. */
static inline bool ct_row_says_little(const struct ct_row *row)
{
    return row->flags & CT_ROW_ASKS || !ct_category_says_more(row->category);
}

/* ct_row_name() returns the recorded name, and ct_row_symbol() the exported name. A function called only by
 * compiler-generated code is recorded under its name in the program's source. */
const char *ct_row_name(uint32_t row);
const char *ct_row_symbol(uint32_t row);
/* Returns the row flags implied by a function's name. */
uint8_t ct_row_form(const char *name);
/* Return the row called `name` in the driver's table, or in the runtime's table for the first version. Return
 * CT_ROWS_ALL if there is none. */
uint32_t ct_row_of_driver(const char *name);
uint32_t ct_row_of_runtime(const char *name);
/* Returns the stubless row with the given layer and name, after creating it if necessary. Returns CT_ROWS_ALL
 * if all stubless rows are used up. The search is linear, so callers should keep the result. `name` is
 * copied. */
uint32_t ct_row_extra(enum ct_layer layer, uint8_t category, const char *name);
/* Returns the row of the fallback stub for `real`, after creating it under the name `name` if necessary.
 * Returns CT_ROWS_ALL if all fallback stubs are used up. */
uint32_t ct_row_fallback(void *real, const char *name);

/* The locations of the stubs. The trampoline source emits the entries in row order into a separate section.
 * Each entry is the distance from the entry itself to the stub, or 0 if there is no stub. The linker defines
 * the section's start. */
extern CT_LOCAL const int32_t __start_ct_stubs[];
/* Returns a row's stub, or NULL if the architecture has none. For a runtime function, returns the entry point
 * that does not check the caller. */
static inline void *ct_row_stub(uint32_t row)
{
    const int32_t *entry = &__start_ct_stubs[row];
    return *entry ? (void *)((uintptr_t)entry + (uintptr_t)(intptr_t)*entry) : NULL;
}

#endif
