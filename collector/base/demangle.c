#include "demangle.h"

#include <libiberty/demangle.h>
#include <string.h>

/* Demangled text as it comes. A short name can stand for gigabytes; past the limit the demangler is left by a
 * jump, which leaks nothing, since it allocates on the stack alone. */

static void on_demangled(const char *piece, size_t bytes, void *data)
{
    struct ct_demangled *out = data;
    if (bytes > CT_DEMANGLED_MAX - out->bytes)
        longjmp(out->enough, 1);
    memcpy(out->text + out->bytes, piece, bytes);
    out->bytes += bytes;
}

/* The demangled form of an Itanium C++ name; others stand for themselves. The demangler's own limit would
 * refuse names of 1 KiB, which CUTLASS has; the worker's stack has room for the recursion of the longest
 * string. */
const char *ct_demangle(const char *mangled, struct ct_demangled *out)
{
    out->bytes = 0;
    if (strncmp(mangled, "_Z", 2) != 0 || setjmp(out->enough) != 0 ||
        !cplus_demangle_v3_callback(mangled, DMGL_PARAMS | DMGL_ANSI | DMGL_NO_RECURSE_LIMIT, on_demangled,
                                    out))
        return mangled;
    out->text[out->bytes] = '\0';
    return out->text;
}
