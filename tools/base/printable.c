/* Text for a terminal. What a trace says of programs (names, command lines, ranges) is theirs to choose, and
 * a terminal obeys what it is sent. Called by rows.c, timeline.c, cudatrace.c and doctor.c. */
#include "cudatrace.h"

#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
