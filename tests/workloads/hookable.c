/* hookable.c: a library for tests that put hooks on its functions. */
#include "hookable.h"

int64_t hookable_put(const struct box *box, const char *name, int32_t number, int32_t third, int32_t fourth,
                     int32_t fifth, int64_t sixth, int64_t seventh)
{
    static volatile int64_t sum;
    sum += number + third + fourth + fifth + sixth + seventh + (name ? name[0] : 0);
    return box ? -(int64_t)box->level : 0;
}

const char *hookable_name(const char **text, int number)
{
    static const char *const names[] = { "zero", "one", "two" };
    *text = names[number % 3];
    (void)*(const volatile char *)*text; /* a BPF program reads only memory that is mapped already */
    return *text;
}

void hookable_around(void (*act)(void))
{
    act();
    __asm__ volatile(""); /* not a jump to `act` */
}
