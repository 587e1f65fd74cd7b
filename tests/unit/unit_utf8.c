/* Tests that valid UTF-8 is read completely, that other bytes are rejected, and that terminals' control
 * characters are distinguished from printable characters. */
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = 0 };

/* Places `text` at the very end of its allocation, so that a sanitizer detects reads past it. */
static void check(const char *text, size_t bytes, size_t wanted, uint32_t wanted_point)
{
    uint32_t point = 0;
    char *copy = malloc(bytes);
    if (!copy)
        exit(EXIT_FAILURE);
    memcpy(copy, text, bytes);
    const size_t length = ct_utf8_next(copy, bytes, &point);
    free(copy);
    if (length == wanted && (wanted == NONE || point == wanted_point))
        return;
    fprintf(stderr, "U+%04X of %zu bytes: got U+%04X of %zu (", wanted_point, wanted, point, length);
    for (size_t i = 0; i < bytes; i++)
        fprintf(stderr, " %02x", (unsigned char)text[i]);
    fprintf(stderr, " )\n");
    exit(EXIT_FAILURE);
}
#define IS(text, length, point) check(text, sizeof(text) - 1, length, point)
#define IS_NONE(text)           check(text, sizeof(text) - 1, NONE, 0)

/* Encodes a code point as the standard prescribes. Every other sequence is invalid. */
static size_t encode(uint32_t point, char text[4])
{
    if (point < 0x80) {
        text[0] = (char)point;
        return 1;
    }
    const size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; point >>= 6)
        text[i] = (char)(0x80 | (point & 0x3f));
    text[0] = (char)((0xf00 >> length & 0xff) | point);
    return length;
}

static void check_all(void)
{
    char text[4];
#ifdef __SANITIZE_ADDRESS__
    enum { STEP = 7 }; /* builds without sanitizers check every code point */
#else
    enum { STEP = 1 };
#endif
    for (uint32_t point = 0; point < 0x200000; point += STEP) {
        const size_t length = encode(point, text);
        const int is_character = point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
        check(text, length, is_character ? length : NONE, point);
        for (size_t less = 1; less < length; less++)
            check(text, less, NONE, 0);
    }
}

static void check_steers(uint32_t first, uint32_t last)
{
    for (uint32_t point = first; point <= last; point++) {
        if (!ct_utf8_steers(point)) {
            fprintf(stderr, "U+%04X steers a terminal\n", point);
            exit(EXIT_FAILURE);
        }
    }
    if (ct_utf8_steers(last + 1) || (first > 0 && ct_utf8_steers(first - 1))) {
        fprintf(stderr, "beside U+%04X to U+%04X nothing steers\n", first, last);
        exit(EXIT_FAILURE);
    }
}

int main(void)
{
    check_all();
    IS("a\xff", 1, 'a');
    IS("\xc3\xbcx", 2, 0xfc);
    IS("\0x", 1, 0);
    IS_NONE("\x80");
    IS_NONE("\xbf\xbf");
    IS_NONE("\xff");
    IS_NONE("\xc3x"); /* another character instead of the continuation bytes */
    IS_NONE("\xe4\xb8x");
    IS_NONE("\xf0\x9f\x9ax");
    IS_NONE("\xe4\xc3\xbc");
    IS_NONE("\xc0\xaf"); /* overlong */
    IS_NONE("\xc1\xbf");
    IS_NONE("\xe0\x9f\xbf");
    IS_NONE("\xf0\x8f\xbf\xbf");
    IS_NONE("\xed\xa0\x80"); /* surrogates */
    IS_NONE("\xed\xbf\xbf");
    IS_NONE("\xf4\x90\x80\x80"); /* past U+10FFFF */
    IS_NONE("\xf5\x80\x80\x80");
    IS_NONE("\xf8\x88\x80\x80\x80");

    check_steers(0, 0x1f);
    check_steers(0x7f, 0x9f);
    check_steers(0x61c, 0x61c);
    check_steers(0x200e, 0x200f);
    check_steers(0x2028, 0x202e);
    check_steers(0x2066, 0x2069);
    return EXIT_SUCCESS;
}
