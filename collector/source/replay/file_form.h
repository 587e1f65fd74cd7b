/* Which form a file of calls has, by how it begins. */
#ifndef CT_FILE_FORM_H
#define CT_FILE_FORM_H

#include <stdint.h>

enum ct_file_form {
    CT_FORM_UNKNOWN, /* a recording, or nothing that is known */
    CT_FORM_LINES,   /* JSON lines */
    CT_FORM_CHROME,  /* one JSON document with trace events */
    CT_FORM_OTHERS,  /* what another program reads */
    CT_FORM_NO_MEMORY,
};

/* *from is where the text begins: after a byte-order mark. *name names one of CT_FORM_OTHERS, as the rest of
 * a sentence. */
enum ct_file_form ct_file_form(int fd, int64_t *from, const char **name);

#endif
