/* Reads the elements of an array in a JSON document one by one, because other programs' documents can be
 * gigabytes in size. */
#ifndef CT_JSON_ELEMENTS_H
#define CT_JSON_ELEMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct ct_json_elements {
    FILE *file;
    int64_t at;    /* number of bytes read so far */
    int64_t begin; /* start of the last value */
    char *text;    /* the value and a NUL, freed by the owner of the struct */
    size_t bytes;  /* the value's length */
    size_t room;
    bool is_short; /* out of memory: the value was skipped */
};

/* Skips white space and reads the next byte. Returns the byte, or EOF at the end. */
int ct_json_next_byte(struct ct_json_elements *from);
/* Reads a value whose first byte `first` has already been read. Returns false if the document ends within the
 * value. If memory runs out, skips the value and sets `is_short`. */
bool ct_json_value(struct ct_json_elements *from, int first);

#endif
