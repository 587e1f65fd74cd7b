/* Kernel names as people wrote them. */
#ifndef CT_DEMANGLE_H
#define CT_DEMANGLE_H

#include <setjmp.h>
#include <stddef.h>

enum {
    CT_DEMANGLED_MAX = 64 * 1024,
    /* The stack of a thread that demangles, untouched but by its recursion: demangle.c. */
    CT_DEMANGLE_STACK_BYTES = 32 * 1024 * 1024,
};

/* Room for a demangled name: the caller's, reused. */
struct ct_demangled {
    jmp_buf enough;
    size_t bytes;
    char text[CT_DEMANGLED_MAX + 1];
};

/* The demangled form of an Itanium C++ name, in `out`; other names, and those that are too long demangled,
 * stand for themselves. */
const char *ct_demangle(const char *mangled, struct ct_demangled *out);

#endif
