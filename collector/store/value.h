/* The store's form of integers. */
#ifndef CT_VALUE_H
#define CT_VALUE_H

#include <stdint.h>

#define CT_NULL INT64_MIN /* represents NULL */
/* Converts any word to a value that is not NULL. The word equal to CT_NULL becomes its neighbour. */
static inline int64_t ct_stored(uint64_t word)
{
    return (int64_t)word == CT_NULL ? CT_NULL + 1 : (int64_t)word;
}

/* Expands a list of integers to two arguments: their number, and the array. */
/* clang-format off */
#define CT_VALUES(...) sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), (const int64_t[]){ __VA_ARGS__ }
/* clang-format on */

#endif
