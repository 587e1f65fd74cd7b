#include "printable.h"

#include "utf8.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

char *ct_printable(const char *text, size_t bytes)
{
    enum { LONGEST = 4 }; /* \xNN for a byte */
    char *out = malloc(bytes * LONGEST + 1), *to = out;
    if (!out)
        return NULL;
    for (size_t i = 0; i < bytes;) {
        uint32_t point = 0;
        size_t length = ct_utf8_next(text + i, bytes - i, &point);
        const bool plain = length > 0 && !ct_utf8_steers(point);
        length = length ? length : 1;
        if (plain) {
            memcpy(to, text + i, length);
            to += length;
        } else if (text[i] == '\n' || text[i] == '\t') {
            *to++ = '\\';
            *to++ = text[i] == '\n' ? 'n' : 't';
        } else {
            for (size_t k = 0; k < length; k++)
                to += sprintf(to, "\\x%02x", (unsigned char)text[i + k]);
        }
        i += length;
    }
    *to = '\0';
    return out;
}

char *ct_printable_format(const char *format, va_list arguments)
{
    char *text = NULL;
    const int bytes = vasprintf(&text, format, arguments);
    if (bytes < 0)
        return NULL;
    char *printable = ct_printable(text, (size_t)bytes);
    free(text);
    return printable;
}

int ct_text_width(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

int ct_text_bytes(const char *text, int width)
{
    const char *at = text;
    while (*at && (width > 0 || (*at & 0xc0) == 0x80))
        width -= (*at++ & 0xc0) != 0x80;
    return (int)(at - text);
}

int ct_terminal_width(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

const char *ct_size_text(char text[32], uint64_t bytes)
{
    static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB" };
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    const bool whole = value >= 100 || value - (double)(uint64_t)value < 0.05;
    snprintf(text, 32, "%.*f %s", whole ? 0 : 1, value, units[unit]);
    return text;
}

/* ---- for programs ---- */

static void print_csv(const char *text, size_t bytes, FILE *to)
{
    if (memchr(text, '\0', bytes) == NULL && !strpbrk(text, ",\"\n\r")) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '"')
            fputc('"', to);
        fputc(text[i], to);
    }
    fputc('"', to);
}

/* Returns whether the file is a terminal that would interpret a character of the text. A buffer in memory is
 * printed on standard output later. */
static bool is_interpreted(const char *text, size_t bytes, FILE *to)
{
    uint32_t point = 0;
    for (size_t i = 0, length = 0; i < bytes; i += length) {
        length = ct_utf8_next(text + i, bytes - i, &point);
        if (length == 0 || ct_utf8_steers(point))
            return isatty(fileno(to) >= 0 ? fileno(to) : STDOUT_FILENO);
    }
    return false;
}

/* CSV has no escapes, so a file contains the exact bytes. */
void ct_print_csv_field(const char *text, size_t bytes, FILE *to)
{
    char *printable = is_interpreted(text, bytes, to) ? ct_printable(text, bytes) : NULL;
    print_csv(printable ? printable : text, printable ? strlen(printable) : bytes, to);
    free(printable);
}

/* Writes `text` as a JSON string. JSON requires UTF-8, so each invalid byte is replaced with U+FFFD.
 * Characters that could control a terminal are escaped. */
void ct_print_json_string(const char *text, size_t bytes, FILE *to)
{
    size_t plain = 0;
    while (plain < bytes && text[plain] >= ' ' && text[plain] < 0x7f && text[plain] != '"' &&
           text[plain] != '\\')
        plain++;
    fputc('"', to);
    fwrite(text, 1, plain, to);
    for (size_t i = plain; i < bytes;) {
        const unsigned char c = (unsigned char)text[i];
        uint32_t point;
        const size_t length = ct_utf8_next(text + i, bytes - i, &point);
        if (length == 0)
            fputs("\\ufffd", to);
        else if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (ct_utf8_steers(point))
            fprintf(to, "\\u%04x", (unsigned)point);
        else
            fwrite(text + i, 1, length, to);
        i += length ? length : 1;
    }
    fputc('"', to);
}
