/* An error message for the user, long enough to contain a path. */
#ifndef CT_MESSAGE_H
#define CT_MESSAGE_H

enum { CT_MESSAGE_BYTES = 4096 + 512 };

/* Formats a message. Always returns -1. */
int ct_message(char message[CT_MESSAGE_BYTES], const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
