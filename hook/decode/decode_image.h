/* The length of code, and the kernel in it: images handed to the driver, and files named to it. */
#ifndef CT_DECODE_IMAGE_H
#define CT_DECODE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of an image that the driver has accepted: a cubin, a fat binary, the wrapper around one that
 * nvcc makes, or text. False when it is none of these. */
bool ct_image_bytes(uint64_t image, uint64_t *bytes);
/* The name of its kernel, in the image itself, when it has one and certainly no other; else NULL. */
const char *ct_image_only_kernel(uint64_t image, size_t *name_bytes);
/* The size of a file; false when there is none of that name. Not a point of cancellation; changes errno. */
bool ct_file_bytes(const char *path, uint64_t *bytes);

#endif
