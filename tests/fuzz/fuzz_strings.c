/* Fuzzes how the collector handles strings from a process. The collector cleans strings, demangles them on a
 * stack as large as the worker's, assigns numbers to them, and looks them up as the names of ioctls. */
#include "demangle.h"
#include "interner.h"
#include "ioctl_names.h"
#include "record.h"
#include "segment.h"
#include "test_point.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_BYTES = 32 * 1024 * 1024 };

static void fail(const char *what, const char *text)
{
    fprintf(stderr, "strings: %s: %s\n", what, text);
    abort();
}

void ct_test_point(const char *name)
{
    (void)name;
}

static void *demangle(void *data)
{
    static struct ct_demangled demangled;
    const char *mangled = data, *text = ct_demangle(mangled, &demangled);
    if (text != mangled && (text != demangled.text || strlen(text) > CT_DEMANGLED_MAX))
        fail("a demangled name that is none", mangled);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    /* Allocate buffers of exactly the text's length, so that a sanitizer detects every access beyond them. */
    if (size > CT_STRING_MAX)
        size = CT_STRING_MAX;
    char *text = malloc(size + 1), *clean = malloc(size + 1), *again = malloc(size + 1);
    if (!text || !clean || !again)
        abort();
    memcpy(text, input, size);
    text[size] = '\0';
    const size_t length = strlen(text);
    ct_text_clean(clean, text, length);
    ct_text_clean(again, clean, length);
    if (strlen(clean) != length || strcmp(clean, again) != 0)
        fail("a clean text is cleaned again", text);

    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (pthread_create(&thread, &attributes, demangle, clean) != 0 || pthread_join(thread, NULL) != 0)
        abort();
    pthread_attr_destroy(&attributes);

    struct ct_interner texts = { .next = 1 };
    bool is_new;
    const int64_t number = ct_interner_get(&texts, clean, &is_new);
    if (number != 1 || !is_new || ct_interner_get(&texts, clean, &is_new) != number || is_new)
        fail("a text has not one number", clean);
    ct_interner_finish(&texts);

    char name[CT_IOCTL_NAME_MAX + 1];
    uint32_t category;
    clean[length < CT_FUNCTION_NAME_MAX ? length : CT_FUNCTION_NAME_MAX] = '\0';
    if (ct_ioctl_names_find(clean, 0, name, &category) && strlen(name) > CT_IOCTL_NAME_MAX)
        fail("an ioctl's name is too long", clean);
    free(text);
    free(clean);
    free(again);
    return 0;
}
