/* Parses numbers that consist only of digits. The C library's functions would also accept spaces, signs, 0x
 * and 1e9. */
#ifndef CT_NUMBER_H
#define CT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses digits only. Returns false if the string is not a number from `least` to `most`. `least` must not be
 * negative. */
bool ct_number_parse(const char *text, int64_t least, int64_t most, int64_t *number);
/* Parses a number with or without a decimal point. Returns the number of characters parsed, or 0 if the
 * string does not begin with a number. */
size_t ct_decimal_parse(const char *text, double *number);

/* Returns whether the string consists only of digits. The number may have any size. */
bool ct_is_digits(const char *text);

#endif
