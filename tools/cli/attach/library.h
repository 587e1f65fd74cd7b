/* The loaded part of the hook's file, which is written into a process, and the offset of its function. */
#ifndef CT_ATTACH_LIBRARY_H
#define CT_ATTACH_LIBRARY_H

#include "image.h"

#define CT_LIBRARY_NAME "libcudatrace.so"

struct ct_library {
    uint8_t *bytes;
    size_t count;          /* up to the end of the loaded part */
    uint64_t visit_offset; /* offset of cudatrace_visit() from the address at which the library is loaded */
};

/* Reads the installed library. Returns false after reporting an error. */
bool ct_library_read(struct ct_library *library, const char *command);
void ct_library_free(struct ct_library *library);
bool ct_library_write(const struct ct_library *library, int fd);
/* Returns whether the image is from the same build, which is true if all its read-only bytes are equal. */
bool ct_library_is(const struct ct_library *library, const struct ct_image *image);
/* Finds the library among those loaded from a file without a path. Returns the address of cudatrace_visit(),
 * or 0. */
uint64_t ct_library_find(const struct ct_library *library, const struct ct_memory *memory);

#endif
