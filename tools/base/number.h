/* Numbers as people write them: digits, and nothing that a library takes besides (spaces, signs, 0x, 1e9). */
#ifndef CT_NUMBER_H
#define CT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Digits alone; false for what is no number from `least`, which is none below 0, to `most`. */
bool ct_number_parse(const char *text, int64_t least, int64_t most, int64_t *number);
/* Digits with a point or without: how many characters that were; 0 for none. */
size_t ct_decimal_parse(const char *text, double *number);

/* Returns whether it is digits alone, of a number of any size. */
bool ct_is_digits(const char *text);

#endif
