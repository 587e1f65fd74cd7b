/* Tests that equal strings receive equal numbers, and different strings receive different numbers. When the
 * table is full, it is emptied, and numbering continues. Invalid UTF-8 is made valid. */
#include "interner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(EXIT_FAILURE);
}

static void check_clean(const char *from, const char *wanted)
{
    char clean[64];
    ct_text_clean(clean, from, strlen(from));
    if (strcmp(clean, wanted) != 0) {
        fprintf(stderr, "clean: '%s' and should be '%s'\n", clean, wanted);
        exit(EXIT_FAILURE);
    }
}

int main(void)
{
    enum { TEXTS = CT_INTERNER_TEXTS_MAX };
    struct ct_interner texts = { .next = 1 };
    static int64_t number[TEXTS];
    char text[32];
    bool is_new;
    for (int i = 0; i < TEXTS; i++) {
        snprintf(text, sizeof(text), "text %d", i);
        number[i] = ct_interner_get(&texts, text, &is_new);
        if (!is_new || number[i] != i + 1)
            fail("a new text has no new number");
    }
    for (int i = 0; i < TEXTS; i++) {
        snprintf(text, sizeof(text), "text %d", i);
        if (ct_interner_get(&texts, text, &is_new) != number[i] || is_new)
            fail("a known text has another number");
    }
    /* Exceed the table's limits, first in the number of strings and then in their bytes. */
    if (ct_interner_get(&texts, "", &is_new) != TEXTS + 1 || !is_new || texts.count != 1)
        fail("a full table does not start anew");
    char *page = malloc(8193);
    if (!page)
        fail("no memory");
    memset(page, 'x', 8192);
    page[8192] = '\0';
    for (int i = 0; i < 3000; i++) {
        memcpy(page, &i, sizeof(i)), page[0] |= 1, page[1] |= 1, page[2] = 1, page[3] = 1;
        if (ct_interner_get(&texts, page, &is_new) == 0 || texts.bytes > CT_INTERNER_BYTES_MAX)
            fail("long texts exceed the limit");
    }
    free(page);
    if (ct_interner_get(&texts, "text 0", &is_new) == number[0] || !is_new)
        fail("a forgotten text has its old number");
    ct_interner_finish(&texts);

    check_clean("", "");
    check_clean("gr\xc3\xbc\xc3\x9f \xe4\xb8\x96 \xf0\x9f\x9a\x80",
                "gr\xc3\xbc\xc3\x9f \xe4\xb8\x96 \xf0\x9f\x9a\x80");
    check_clean("\xfc \xff", "? ?");
    check_clean("cut \xe4\xb8", "cut ??");
    check_clean("\xc0\xaf \xe0\x80\x80 \xf0\x80\x80\x80", "?? ??? ????"); /* overlong */
    check_clean("\xed\xa0\x80 \xf4\x90\x80\x80", "??? ????");             /* a surrogate; past the end */
    return EXIT_SUCCESS;
}
