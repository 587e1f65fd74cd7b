#include "demangle.h"

#include <libiberty/demangle.h>
#include <string.h>

/* Appends demangled text as it is produced. A short name can expand to gigabytes, so once the text exceeds
 * the limit, the function leaves the demangler with longjmp(). Nothing leaks, because the demangler allocates
 * only on the stack. */

static void on_demangled(const char *piece, size_t bytes, void *data)
{
    struct ct_demangled *out = data;
    if (bytes > CT_DEMANGLED_MAX - out->bytes)
        longjmp(out->enough, 1);
    memcpy(out->text + out->bytes, piece, bytes);
    out->bytes += bytes;
}

/* Removes the demangler's own recursion limit, which would reject names of 1 KiB, such as those in CUTLASS.
 * The worker's stack is large enough for the deepest recursion that the longest allowed name can cause. */
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
