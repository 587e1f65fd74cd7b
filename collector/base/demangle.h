/* Demangles kernel names. */
#ifndef CT_DEMANGLE_H
#define CT_DEMANGLE_H

#include <setjmp.h>
#include <stddef.h>

enum {
    CT_DEMANGLED_MAX = 64 * 1024,
    /* The stack size of a thread that demangles names. Most of the stack is touched only when the demangler
     * recurses deeply. */
    CT_DEMANGLE_STACK_BYTES = 32 * 1024 * 1024,
};

/* A buffer for a demangled name, owned and reused by the caller. */
struct ct_demangled {
    jmp_buf enough;
    size_t bytes;
    char text[CT_DEMANGLED_MAX + 1];
};

/* Demangles an Itanium C++ name into `out`. Returns the name itself if it is not mangled, or if its demangled
 * form would be too long. */
const char *ct_demangle(const char *mangled, struct ct_demangled *out);

#endif
