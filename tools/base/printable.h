/* Makes text safe to print on a terminal or to pass to other programs. Names, command lines and ranges in a
 * trace come from traced programs, and may contain escape sequences that a terminal would obey. */
#ifndef CT_PRINTABLE_H
#define CT_PRINTABLE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Returns a printable copy, which the caller frees. Control characters, direction marks and invalid UTF-8,
 * which could control a terminal, are written as \n, \t or \xNN. Returns NULL if out of memory. */
char *ct_printable(const char *text, size_t bytes);
/* Formats a string like vprintf(), and returns a printable copy, which the caller frees. */
char *ct_printable_format(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* Counts characters instead of bytes. UTF-8 continuation bytes have no width. */
int ct_text_width(const char *text);
/* Returns the number of bytes in the first `width` characters. */
int ct_text_bytes(const char *text, int width);
/* Returns the number of columns of the terminal on standard output. Returns 0 if standard output is not a
 * terminal, in which case lines may have any length. */
int ct_terminal_width(void);
/* "64 KiB", "1.5 GiB". */
const char *ct_size_text(char text[32], uint64_t bytes);

/* A JSON string. Characters that could control a terminal are written as \uNNNN. */
void ct_print_json_string(const char *text, size_t bytes, FILE *to);
/* Writes one field of a CSV line (RFC 4180), without the comma after it. On a terminal, writes a printable
 * copy. */
void ct_print_csv_field(const char *text, size_t bytes, FILE *to);

#endif
