/* Reads the loadable part of the hook's file, which is written into a process, and finds the offset of
 * cudatrace_visit(). */
#ifndef CT_ATTACH_LIBRARY_H
#define CT_ATTACH_LIBRARY_H

#include "image.h"

#define CT_LIBRARY_NAME "libcudatrace.so"

struct ct_library {
    uint8_t *bytes;
    size_t count;          /* number of bytes, up to the end of the loadable part */
    uint64_t visit_offset; /* offset of cudatrace_visit() from the library's load address */
};

/* Reads the installed library. Returns false after reporting an error. */
bool ct_library_read(struct ct_library *library, const char *command);
void ct_library_free(struct ct_library *library);
/* Returns whether the image is from the same build, which is the case if all its read-only bytes are
 * equal. */
bool ct_library_is(const struct ct_library *library, const struct ct_image *image);
/* Finds the library among those loaded from a memfd. Returns the address of cudatrace_visit(), or 0 if the
 * library is not loaded. */
uint64_t ct_library_find(const struct ct_library *library, const struct ct_memory *memory);

#endif
