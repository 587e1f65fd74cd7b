/* Text for a terminal and for programs. What a trace says of programs (names, command lines, ranges) is
 * theirs to choose, and a terminal obeys what it is sent. */
#ifndef CT_PRINTABLE_H
#define CT_PRINTABLE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A copy, to be freed, with what would steer a terminal written as \n, \t or \xNN: control characters, marks
 * of direction, bytes that are no UTF-8. NULL without memory. */
char *ct_printable(const char *text, size_t bytes);
/* The same of what vprintf() would print. */
char *ct_printable_format(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* Characters, not bytes: what continues a character in UTF-8 takes no room. */
int ct_text_width(const char *text);
/* The bytes of the first `width` characters. */
int ct_text_bytes(const char *text, int width);
/* Columns of the terminal that is standard output; 0 where it is none, and lines may be of any length. */
int ct_terminal_width(void);
/* "64 KiB", "1.5 GiB". */
const char *ct_size_text(char text[32], uint64_t bytes);

/* A JSON string. */
void ct_print_json_string(const char *text, size_t bytes, FILE *to);
/* A field of a line of CSV, RFC 4180, without the comma behind it. */
void ct_print_csv_field(const char *text, size_t bytes, FILE *to);

#endif
