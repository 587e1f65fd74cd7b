/* Text for a terminal. What a trace says of programs (names, command lines, ranges) is theirs to choose, and
 * a terminal obeys what it is sent. Called by query.c and cudatrace.c. */
#include "cudatrace.h"

#include <stdlib.h>
#include <string.h>

size_t ct_utf8_next(const char *text, size_t bytes, uint32_t *point)
{
    static const struct {
        uint8_t mask, lead;
        uint32_t least;
    } forms[] = { { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 } };
    const uint8_t *at = (const uint8_t *)text;
    for (size_t length = 1; length <= 4 && length <= bytes; length++) {
        if ((at[0] & forms[length - 1].mask) != forms[length - 1].lead)
            continue;
        uint32_t value = at[0] & (uint8_t)~forms[length - 1].mask;
        for (size_t i = 1; i < length; i++) {
            if ((at[i] & 0xc0) != 0x80)
                return 0;
            value = value << 6 | (at[i] & 0x3fU);
        }
        *point = value;
        const bool fine =
            value >= forms[length - 1].least && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff);
        return fine ? length : 0;
    }
    return 0;
}

static bool steers(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        { 0x00, 0x1f }, { 0x7f, 0x9f }, { 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 },
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (point >= ranges[i].first && point <= ranges[i].last)
            return true;
    }
    return false;
}

char *ct_printable(const char *text, size_t bytes)
{
    enum { LONGEST = 4 }; /* \xNN for a byte */
    char *out = malloc(bytes * LONGEST + 1), *to = out;
    if (!out)
        return NULL;
    for (size_t i = 0; i < bytes;) {
        uint32_t point = 0;
        size_t length = ct_utf8_next(text + i, bytes - i, &point);
        const bool plain = length > 0 && !steers(point);
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
