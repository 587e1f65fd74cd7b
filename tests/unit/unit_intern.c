/* Tests that equal keys receive equal numbers, and different keys receive different numbers. When the table
 * is full, it is emptied, and numbering continues. */
#include "intern.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEYS = 50000, LIMIT = 60000 };

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(EXIT_FAILURE);
}

int main(void)
{
    struct ct_intern intern;
    static int64_t number[KEYS];
    bool is_new;
    ct_intern_init(&intern, 2 * sizeof(int64_t), LIMIT, 1);
    for (int64_t i = 0; i < KEYS; i++) {
        const int64_t key[2] = { i % 7, i };
        number[i] = ct_intern_get(&intern, key, &is_new);
        if (!is_new || number[i] != i + 1)
            fail("a new key has no new number");
    }
    for (int64_t i = 0; i < KEYS; i++) {
        const int64_t key[2] = { i % 7, i };
        if (ct_intern_get(&intern, key, &is_new) != number[i] || is_new)
            fail("a known key has another number");
    }
    for (int64_t i = KEYS; i < LIMIT + 10; i++) {
        const int64_t key[2] = { i % 7, i };
        if (ct_intern_get(&intern, key, &is_new) != i + 1 || !is_new)
            fail("numbers do not go on");
    }
    if (intern.count > LIMIT)
        fail("the table grew past its limit");
    const int64_t forgotten[2] = { 0, 0 };
    if (ct_intern_get(&intern, forgotten, &is_new) == number[0] || !is_new)
        fail("a forgotten key kept its number");
    ct_intern_finish(&intern);
    return EXIT_SUCCESS;
}
