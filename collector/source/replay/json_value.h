/* Reads JSON that other programs wrote, leniently: one bad value must not cost the event that contains it. */
#ifndef CT_JSON_VALUE_H
#define CT_JSON_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Parses a value, and replaces what JSON does not permit. NaN, infinities, numbers that are too large, and
 * values nested too deeply become null. Invalid characters, NUL and halves of surrogate pairs become U+FFFD.
 * Returns NULL if the text is still not JSON, and writes the reason to `why`, which may be NULL. */
json_t *ct_json_parse(const char *text, size_t bytes, char why[JSON_ERROR_TEXT_LENGTH]);

/* Read numbers. A number may also be written as a string. Return false if the value is missing or is not a
 * number, or if an integer is expected, and the number is not one. */
bool ct_json_is_number(const json_t *value, double *number);
bool ct_json_is_integer(const json_t *value, int64_t *integer);

/* Reads a member that is a number from 0 on, and multiplies it by 10 to the power `exponent`, without the
 * rounding of a double. `text` is the text that `object` was parsed from. It ends with a NUL after `bytes`
 * bytes. Returns false if there is no such member, or if the product is too large. */
bool ct_json_scaled(const json_t *object, const char *text, size_t bytes, const char *name, int exponent,
                    int64_t *product);

int64_t ct_json_integer(const json_t *object, const char *name, int64_t otherwise);
const char *ct_json_text(const json_t *object, const char *name, const char *otherwise);

/* Returns a text that identifies a process or thread: "7" for 7 and "7", and `"rank 1` for a name. Returns ""
 * if the value is neither a number nor a string, or NULL if out of memory. The caller frees the text. */
char *ct_json_identity(const json_t *value);
/* Returns the number under which a process or thread is stored. Integers from 0 to `most` are stored as they
 * are. Anything else gets a number from its identity, above all PIDs of Linux. */
int64_t ct_json_identity_number(const char *identity, int64_t most);
/* Returns the name in the identity, or "" if it is a number that is stored as it is. */
const char *ct_json_identity_name(const char *identity, int64_t most);
uint64_t ct_json_identity_hash(const char *identity);

#endif
