#include "rows.h"

#include "current.h"
#include "names.h"

#include <stdlib.h>
#include <string.h>

/* A row is decoded unless the table names the decoder `none`. `no_status` marks functions that return no
 * status. */
#define FLAGS_none                 , 0
#define FLAGS_no_status            , CT_ROW_DECODED | CT_ROW_NO_STATUS
#define SECOND(first, second, ...) second
#define FLAGS_OF(...)              SECOND(__VA_ARGS__, CT_ROW_DECODED, )

/* A second driver image uses only one decoder. The other decoders keep facts about the first image's objects
 * and call its functions, and the two images may use the same handles. */
#define OTHERS_proc_address , CT_ROW_DECODED
#define OTHERS_OF(...)      SECOND(__VA_ARGS__, 0, )

struct ct_row ct_rows[CT_ROWS_ALL] = {
#define ROW(function, group, words, decoder)                                                                 \
    [CT_ROW_##function] = {                                                                                  \
        .stack_words = CT_STACK_WORDS(words),                                                                \
        .flags = FLAGS_OF(FLAGS_##decoder),                                                                  \
        .category = CT_CATEGORY_##group,                                                                     \
    },
#include "driver_api.def"
#undef ROW
#define RUNTIME_ROW(version, function, group, words, decoder)                                                \
    [CT_RUNTIME_ROW(version, CT_RUNTIME_##function)] = {                                                     \
        .stack_words = words,                                                                                \
        .flags = FLAGS_OF(FLAGS_##decoder),                                                                  \
        .category = CT_CATEGORY_##group,                                                                     \
        .layer = CT_LAYER_RUNTIME,                                                                           \
    },
#define ROW(...) RUNTIME_ROW(0, __VA_ARGS__)
#include "runtime_api.def"
#undef ROW
#define ROW(...) RUNTIME_ROW(1, __VA_ARGS__)
#include "runtime_api.def"
#undef ROW
#define ROW(...) RUNTIME_ROW(2, __VA_ARGS__)
#include "runtime_api.def"
#undef ROW
#define ROW(function, group, words, decoder)                                                                 \
    [CT_DRIVER_ROW(1, CT_ROW_##function)] = {                                                                \
        .stack_words = CT_STACK_WORDS(words),                                                                \
        .flags = OTHERS_OF(OTHERS_##decoder),                                                                \
        .category = CT_CATEGORY_##group,                                                                     \
    },
#include "driver_api.def"
#undef ROW
};
static_assert(CT_RUNTIME_VERSIONS == 3, "rows for each version");

static const char *const driver_names[CT_ROW_COUNT] = {
#define ROW(function, ...) #function,
#include "driver_api.def"
#undef ROW
};
static const char *const runtime_names[CT_RUNTIME_FUNCTIONS] = {
#define ROW(function, ...) #function,
#include "runtime_api.def"
#undef ROW
};

/* Names of the rows that are in no table: fallback rows, followed by extra rows. */
static char made_names[CT_ROWS_ALL - CT_NAMED_COUNT][CT_FUNCTION_NAME_MAX + 1];
static _Atomic uint32_t fallbacks, extras; /* number of rows in use; increased after a row's fields are
                                            * written */

const char *ct_row_symbol(uint32_t row)
{
    if (row < CT_ROW_COUNT)
        return driver_names[row];
    if (row < CT_SECOND_FIRST)
        return runtime_names[(row - CT_ROW_COUNT) % CT_RUNTIME_FUNCTIONS];
    return row < CT_NAMED_COUNT ? driver_names[row - CT_SECOND_FIRST] : made_names[row - CT_NAMED_COUNT];
}

const char *ct_row_name(uint32_t row)
{
    const char *symbol = ct_row_symbol(row);
    return row >= CT_ROW_COUNT && row < CT_SECOND_FIRST ? symbol + strspn(symbol, "_") : symbol;
}

uint8_t ct_row_form(const char *name)
{
    const char *suffix = strrchr(name, '_');
    const bool is_per_thread = suffix && (strcmp(suffix, "_ptsz") == 0 || strcmp(suffix, "_ptds") == 0);
    return (is_per_thread ? CT_ROW_PER_THREAD : 0) | (ct_name_asks(name) ? CT_ROW_ASKS : 0);
}

static int compare_names(const void *name, const void *place)
{
    return strcmp(name, *(const char *const *)place);
}

/* The tables are sorted by strcmp(). */
static uint32_t find_name(const char *name, const char *const *names, uint32_t count)
{
    const char *const *found = bsearch(name, names, count, sizeof(*names), compare_names);
    return found ? (uint32_t)(found - names) : CT_ROWS_ALL;
}

uint32_t ct_row_of_driver(const char *name)
{
    return find_name(name, driver_names, CT_ROW_COUNT);
}

uint32_t ct_row_of_runtime(const char *name)
{
    const uint32_t function = find_name(name, runtime_names, CT_RUNTIME_FUNCTIONS);
    return function == CT_ROWS_ALL ? CT_ROWS_ALL : CT_RUNTIME_ROW(0, function);
}

/* ---- rows made at run time ---- */

static uint32_t find_fallback(const void *real)
{
    const uint32_t used = atomic_load_explicit(&fallbacks, memory_order_acquire);
    for (uint32_t row = CT_NAMED_COUNT; row < CT_NAMED_COUNT + used; row++) {
        if (ct_rows[row].real == real)
            return row;
    }
    return CT_ROWS_ALL;
}

uint32_t ct_row_fallback(void *real, const char *name)
{
    uint32_t found = find_fallback(real);
    if (found != CT_ROWS_ALL || !ct_process_lock())
        return found;
    found = find_fallback(real);
    const uint32_t used = atomic_load_explicit(&fallbacks, memory_order_relaxed);
    if (found == CT_ROWS_ALL && used < CT_FALLBACK_COUNT) {
        found = CT_NAMED_COUNT + used;
        struct ct_row *row = &ct_rows[found];
        strncpy(made_names[used], name, CT_FUNCTION_NAME_MAX);
        row->stack_words = CT_FALLBACK_STACK_WORDS;
        row->category = CT_CATEGORY_other;
        row->real = real;
        /* Pairs with the acquire in find_fallback(). */
        atomic_store_explicit(&fallbacks, used + 1, memory_order_release);
    }
    ct_process_unlock();
    return found;
}

static uint32_t find_extra(enum ct_layer layer, const char *name)
{
    const uint32_t used = atomic_load_explicit(&extras, memory_order_acquire);
    for (uint32_t row = CT_STUB_COUNT; row < CT_STUB_COUNT + used; row++) {
        if (ct_rows[row].layer == layer && strncmp(ct_row_name(row), name, CT_FUNCTION_NAME_MAX) == 0)
            return row;
    }
    return CT_ROWS_ALL;
}

uint32_t ct_row_extra(enum ct_layer layer, uint8_t category, const char *name)
{
    uint32_t found = find_extra(layer, name);
    if (found != CT_ROWS_ALL || !ct_process_lock())
        return found;
    found = find_extra(layer, name);
    const uint32_t used = atomic_load_explicit(&extras, memory_order_relaxed);
    if (found == CT_ROWS_ALL && used < CT_EXTRA_COUNT) {
        found = CT_STUB_COUNT + used;
        struct ct_row *row = &ct_rows[found];
        strncpy(made_names[found - CT_NAMED_COUNT], name, CT_FUNCTION_NAME_MAX);
        row->layer = (uint8_t)layer;
        row->category = category;
        /* Pairs with the acquire in find_extra(). */
        atomic_store_explicit(&extras, used + 1, memory_order_release);
    }
    ct_process_unlock();
    return found;
}
