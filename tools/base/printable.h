/* Text for a terminal and for programs. Traced programs choose the text in a trace (names, command lines,
 * ranges), and a terminal obeys escape sequences in it. */
#ifndef CT_PRINTABLE_H
#define CT_PRINTABLE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Returns a copy, which the caller frees. Control characters, direction marks and invalid UTF-8, which could
 * steer a terminal, are written as \n, \t or \xNN. Returns NULL if memory is short. */
char *ct_printable(const char *text, size_t bytes);
/* Formats a text as vprintf() does, and returns such a copy of it. */
char *ct_printable_format(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* Counts characters, not bytes: continuation bytes of UTF-8 have no width. */
int ct_text_width(const char *text);
/* Returns the number of bytes in the first `width` characters. */
int ct_text_bytes(const char *text, int width);
/* Returns the columns of the terminal on standard output. Returns 0 if it is not a terminal. Lines may then
 * have any length. */
int ct_terminal_width(void);
/* "64 KiB", "1.5 GiB". */
const char *ct_size_text(char text[32], uint64_t bytes);

/* A JSON string. */
void ct_print_json_string(const char *text, size_t bytes, FILE *to);
/* Writes a field of a line of CSV (RFC 4180), without the comma after it. */
void ct_print_csv_field(const char *text, size_t bytes, FILE *to);

#endif
