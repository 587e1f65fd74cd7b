/* Parses numbers as people write them: digits only. Library functions also accept spaces, signs, 0x and
 * 1e9. */
#ifndef CT_NUMBER_H
#define CT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses digits only. Returns false if the text is not a number from `least` to `most`; `least` is not
 * negative. */
bool ct_number_parse(const char *text, int64_t least, int64_t most, int64_t *number);
/* Parses digits with or without a decimal point. Returns how many characters it used, or 0 if there is no
 * number. */
size_t ct_decimal_parse(const char *text, double *number);

/* Returns whether the text is digits only, for a number of any size. */
bool ct_is_digits(const char *text);

#endif
