/* Integers and calls on their way into the database. */
#ifndef CT_VALUE_H
#define CT_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#define CT_NULL INT64_MIN /* as a value: NULL */
/* A word that may be anything, as a value that is not NULL: the one that a statement takes for NULL goes as
 * its neighbour. */
static inline int64_t ct_stored(uint64_t word)
{
    return (int64_t)word == CT_NULL ? CT_NULL + 1 : (int64_t)word;
}

/* A list of integers as two arguments: how many, and the array. */
/* clang-format off */
#define CT_VALUES(...) sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), (const int64_t[]){ __VA_ARGS__ }
/* clang-format on */

/* A call as the table `call` takes it. */
struct ct_row {
    uint64_t end_ns;
    uint64_t duration_ns;
    int64_t site_id;
    uint64_t bytes;
    bool has_bytes;
};

#endif
