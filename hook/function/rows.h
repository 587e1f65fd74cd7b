/* The functions that are traced, one row each: its real address, its number in the segment, what is to be
 * done for a call of it. */
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

/* The runtime's functions, in the order of the table, and the versions of libcudart that have a stub of
 * each. */
enum {
#define ROW(name, category, stack_words, decoder) CT_RUNTIME_##name,
#include "runtime_api.def"
#undef ROW
    CT_RUNTIME_FUNCTIONS,
    CT_RUNTIME_VERSIONS = 3
};

/* Images of the driver in one process whose calls are recorded. Calls of the second are recorded without
 * details. */
enum { CT_DRIVERS = 2 };

/* Numbers of rows: the driver's functions in order, the runtime's in order for each version, the driver's
 * again for a second image, then the spare stubs. */
enum {
#define ROW(name, category, stack_words, decoder) CT_ROW_##name,
#include "driver_api.def"
#undef ROW
    CT_ROW_COUNT, /* the driver's rows */
    CT_SECOND_FIRST = CT_ROW_COUNT + CT_RUNTIME_VERSIONS * CT_RUNTIME_FUNCTIONS,
    CT_NAMED_COUNT = CT_SECOND_FIRST + CT_ROW_COUNT,
    CT_SPARE_COUNT = 128,
    CT_STUB_COUNT = CT_NAMED_COUNT + CT_SPARE_COUNT,
    CT_LIBRARY_DLSYM = CT_STUB_COUNT, /* no row: an entry of ours for who asks for the C library's dlsym */
    /* Rows without a stub, for what is traced by other means than the trampoline. */
    CT_EXTRA_COUNT = 768,
    CT_ROWS_ALL = CT_STUB_COUNT + CT_EXTRA_COUNT
};

#define CT_DRIVER_ROW(driver, function)   (((driver) ? CT_SECOND_FIRST : 0U) + (function))
#define CT_RUNTIME_ROW(version, function) (CT_ROW_COUNT + (version)*CT_RUNTIME_FUNCTIONS + (function))

/* Stack words that are passed on for a function whose signature nobody told us, where the caller has them. */
enum { CT_SPARE_STACK_WORDS = 16 };

enum ct_row_flags {
    CT_ROW_DECODED = 1,    /* it has a decoder */
    CT_ROW_PER_THREAD = 2, /* a _ptsz or _ptds form: the null stream is the thread's own */
    CT_ROW_NO_STATUS = 4,  /* its result is a text */
    CT_ROW_ASKS = 8,       /* it changes nothing, and answers a question */
};

/* One cache line holds two. `enter_id` and `leave_id` are `id` where the short way in entry.c may be taken,
 * else 0. */
struct ct_row {
    void *real; /* NULL when the driver lacks it */
    uint64_t reserved0;
    /* Stored with release when the directory entry is there, loaded with acquire by ct_enter(). */
    _Atomic uint16_t id;       /* index in the segment's directory, 0 while the process has not called it */
    _Atomic uint16_t enter_id; /* 0 unless the counter is the clock */
    _Atomic uint16_t leave_id; /* 0 unless, besides, there is no decoder, and every call is recorded */
    uint8_t stack_words;
    uint8_t flags; /* enum ct_row_flags */
    uint8_t category;
    uint8_t layer;            /* enum ct_layer */
    _Atomic uint8_t left_out; /* 1: counted and not recorded */
    uint8_t way;              /* enum ct_way; of a slot, `real` is what stood there */
    _Atomic uint16_t wrap_id; /* as leave_id, decoder or not: for a wrapper that reads the arguments itself */
    _Atomic uint16_t
        skip_id; /* 0 unless the counter is the clock, there is no decoder, and each call is left out */
};
static_assert(sizeof(struct ct_row) == 32, "trampoline; two rows a cache line");
static_assert(offsetof(struct ct_row, enter_id) == 18, "trampoline");

extern CT_LOCAL struct ct_row ct_rows[CT_ROWS_ALL];

/* True if a call of the row says little where it is short and succeeds: such calls give way in a ring that is
 * nearly full. Questions do whatever they are about. */
static inline bool ct_row_says_little(const struct ct_row *row)
{
    return row->flags & CT_ROW_ASKS || !ct_category_says_more(row->category);
}

/* The name under which it is recorded, and that under which it is exported: what the compiler calls is
 * recorded as what the program wrote. */
const char *ct_row_name(uint32_t row);
const char *ct_row_symbol(uint32_t row);
/* The flags that a function's name tells. */
uint8_t ct_row_form(const char *name);
/* The row of the driver's, or the runtime's first version's, function of that name; CT_ROWS_ALL when the
 * table has none. */
uint32_t ct_row_of_driver(const char *name);
uint32_t ct_row_of_runtime(const char *name);
/* The row of that layer and name among those without a stub, made if need be; CT_ROWS_ALL when they are used
 * up. The caller remembers it: names are compared one by one. `name` is copied. */
uint32_t ct_row_extra(enum ct_layer layer, uint8_t category, const char *name);
/* The row of a spare stub for `real`, named `name`; CT_ROWS_ALL when they are used up. The same for the same
 * pointer. */
uint32_t ct_row_spare(void *real, const char *name);

/* The places of the stubs, which the trampoline's file makes in the order of the rows and says in a section
 * of its own: the distance of each from its entry, 0 for none. The linker names the section's beginning. */
extern CT_LOCAL const int32_t __start_ct_stubs[];
/* The stub of a row, NULL where the architecture has none; of a runtime function, the entry that does not
 * look at the caller. */
static inline void *ct_row_stub(uint32_t row)
{
    const int32_t *entry = &__start_ct_stubs[row];
    return *entry ? (void *)((uintptr_t)entry + (uintptr_t)(intptr_t)*entry) : NULL;
}

#endif
