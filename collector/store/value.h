/* The store's representation of integers and NULL. */
#ifndef CT_VALUE_H
#define CT_VALUE_H

#include <stdint.h>

#define CT_NULL INT64_MIN /* represents NULL */
/* Converts any word to a value that is not NULL. If the word equals CT_NULL, returns CT_NULL + 1. */
static inline int64_t ct_stored(uint64_t word)
{
    return (int64_t)word == CT_NULL ? CT_NULL + 1 : (int64_t)word;
}

/* Expands a list of integers to two arguments, the number of integers and an array. */
/* clang-format off */
#define CT_VALUES(...) sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), (const int64_t[]){ __VA_ARGS__ }
/* clang-format on */

#endif
