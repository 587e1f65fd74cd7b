/* Images of code that the program passes to the driver: their length, and the name of their kernel. */
#ifndef CT_DECODE_IMAGE_H
#define CT_DECODE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Images begin with one of these, or are text. */
#define CT_CUBIN_MAGIC   UINT32_C(0x464c457f) /* an ELF file */
#define CT_FATBIN_MAGIC  UINT32_C(0xba55ed50)
#define CT_WRAPPER_MAGIC UINT32_C(0x466243b1)

/* The length of an image that the driver has accepted: a cubin, a fat binary, the wrapper around one that
 * nvcc makes, or text. False when it is none of these. */
bool ct_image_bytes(uint64_t image, uint64_t *bytes);
/* The name of its kernel, in the image itself, when it has one and certainly no other; else NULL. */
const char *ct_image_only_kernel(uint64_t image, size_t *name_bytes);

#endif
