/* hookable.h: the functions of hookable.c, a library for tests that put hooks on them. */
#ifndef HOOKABLE_H
#define HOOKABLE_H

#include <stdint.h>

struct box {
    uint32_t tag;
    int16_t level;
    uint8_t padding[2];
    uint64_t bytes;
};

/* Arguments 6 and 7 are on the stack. Returns -level, or 0 if `box` is NULL. */
int64_t hookable_put(const struct box *box, const char *name, int32_t number, int32_t third, int32_t fourth,
                     int32_t fifth, int64_t sixth, int64_t seventh);
/* On return, *text is the result. */
const char *hookable_name(const char **text, int number);
/* Calls `act`. */
void hookable_around(void (*act)(void));

#endif
