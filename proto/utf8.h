/* Checks text of unknown origin, because programs choose the names of their files, kernels and ranges. All
 * readers use the same decoder, so that they agree on which text is valid. The daemon stores only valid
 * UTF-8. Neither the daemon's log nor the tools ever output characters that control a terminal. */
#ifndef CT_PROTO_UTF8_H
#define CT_PROTO_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the character at `text`, with `bytes` bytes (1 or more) available. Stores the character in *point
 * and returns its length in bytes, or 0 if it is invalid (Unicode Standard, table 3-7). A character is
 * invalid if it has a stray or missing continuation byte or an overlong form, if it is half of a surrogate
 * pair, or if it is above U+10FFFF. */
static inline size_t ct_utf8_next(const char *text, size_t bytes, uint32_t *point)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const uint8_t first = (uint8_t)text[0];
    *point = first;
    if (first < 0x80)
        return 1;
    const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length > bytes)
        return 0;
    uint32_t value = first & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) {
        const uint8_t next = (uint8_t)text[i];
        if ((next & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (next & 0x3fU);
    }
    *point = value;
    const bool is_character =
        value >= least[length] && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff);
    return is_character ? length : 0;
}

/* True if a terminal would interpret the character instead of displaying it. Terminals interpret control
 * characters, line and paragraph separators, and characters that change the direction of the following text
 * (Bidi_Control in PropList.txt of the Unicode database). */
static inline bool ct_utf8_steers(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        { 0x00, 0x1f },     { 0x7f, 0x9f },     { 0x61c, 0x61c },
        { 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 },
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (point >= ranges[i].first && point <= ranges[i].last)
            return true;
    }
    return false;
}

#endif
