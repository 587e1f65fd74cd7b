/* Detects the format of an input file from its first bytes. */
#ifndef CT_FILE_FORM_H
#define CT_FILE_FORM_H

#include <stdint.h>

enum ct_file_form {
    CT_FORM_UNKNOWN, /* a recording, or unknown */
    CT_FORM_LINES,   /* JSON lines */
    CT_FORM_CHROME,  /* one JSON document with trace events */
    CT_FORM_OTHERS,  /* another program's format */
    CT_FORM_NO_MEMORY,
};

/* Sets *from to the start of the text, after a byte-order mark. For CT_FORM_OTHERS, sets *name to the rest of
 * a sentence about the format. */
enum ct_file_form ct_file_form(int fd, int64_t *from, const char **name);

#endif
