/* Functions whose first instructions differ between compilers. This file is built once for each compiler and
 * set of options. unit_inline_plan.c gives the functions slots. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SUBJECT __attribute__((visibility("default"), noinline))

uint64_t inline_subject_word = 41;
static uint64_t hidden_word = 7;
static _Thread_local uint64_t thread_word = 3;

struct eight_words {
    uint64_t words[8];
};

SUBJECT uint64_t constant(void)
{
    return 801;
}

SUBJECT uint64_t nothing(void)
{
    return 0;
}

SUBJECT uint64_t same(uint64_t a)
{
    return a;
}

SUBJECT uint64_t exported_word(void)
{
    return ++inline_subject_word;
}

SUBJECT uint64_t a_hidden_word(uint64_t a)
{
    hidden_word += a;
    return hidden_word;
}

SUBJECT uint64_t a_thread_word(uint64_t a)
{
    thread_word ^= a;
    return thread_word;
}

SUBJECT uint64_t is_null(const void *a, uint64_t b)
{
    return a ? b * 3 + inline_subject_word : 1;
}

SUBJECT uint64_t by_place(uint64_t a, uint64_t b)
{
    if (hidden_word > 100000)
        return a;
    return b + 1;
}

SUBJECT uint64_t all_registers(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    return a + 3 * b + 5 * c + 7 * d + 11 * e + 13 * f;
}

SUBJECT uint64_t all(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, double p,
                     double q, double r, double s, double t, double u, double v, double w, uint64_t g,
                     uint64_t h, uint64_t i, uint64_t j)
{
    const double sum = p + 3 * q + 5 * r + 7 * s + 11 * t + 13 * u + 17 * v + 19 * w;
    return (a ^ b << 3 ^ c << 7 ^ d << 11 ^ e << 17 ^ f << 23) + g + 3 * h + 5 * i + 7 * j + (uint64_t)sum;
}

SUBJECT uint64_t by_value(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
                          struct eight_words words)
{
    uint64_t sum = a + b + c + d + e + f;
    for (int i = 0; i < 4; i++)
        sum = sum * 31 + words.words[i];
    return sum;
}

SUBJECT uint64_t floating(double p)
{
    return (uint64_t)(p * 1.5 + 2.25);
}

SUBJECT uint64_t counts_down(uint64_t a)
{
    uint64_t steps = 0;
    a &= 0xffff;
    while (a > 1) {
        a = a % 2 ? 3 * a + 1 : a / 2;
        steps++;
    }
    return steps;
}

SUBJECT uint64_t length(uint64_t a)
{
    static const char text[] = "0123456789abcdef";
    uint64_t count = 0;
    for (const char *at = text + a % 16; *at; at++)
        count++;
    return count;
}

SUBJECT uint64_t recursive(uint64_t a)
{
    a %= 20;
    return a < 2 ? a : recursive(a - 1) + recursive(a - 2);
}

SUBJECT uint64_t last_call(uint64_t a, uint64_t b)
{
    return all_registers(b, a, 1, 2, 3, 4);
}

SUBJECT uint64_t library_call(uint64_t a)
{
    char text[32] = { 0 };
    memset(text, 'x', a % 31);
    return strlen(text);
}

SUBJECT uint64_t large_frame(uint64_t a)
{
    volatile uint64_t words[4000];
    words[a % 4000] = a;
    words[3999] = 1;
    return words[a % 4000];
}

SUBJECT uint64_t chosen(uint64_t a, uint64_t b)
{
    switch (a % 9) {
    case 0:
        return b;
    case 1:
        return b * 3;
    case 2:
        return b ^ 0x55;
    case 3:
        return b - a;
    case 4:
        return hidden_word;
    case 5:
        return b / 7;
    case 6:
        return all_registers(a, b, 0, 0, 0, 0);
    default:
        return b << 3;
    }
}

SUBJECT uint64_t changes_memory(uint64_t a)
{
    uint64_t *word = malloc(sizeof(*word));
    *word = a;
    const uint64_t result = *word + 1;
    free(word);
    return result;
}

SUBJECT void reset(void)
{
    inline_subject_word = 41;
    hidden_word = 7;
    thread_word = 3;
}
