/* Reads images of code that the program passes to the driver, and finds their length and the name of their
 * kernel. */
#ifndef CT_DECODE_IMAGE_H
#define CT_DECODE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An image either begins with one of these magic numbers or is text. */
#define CT_CUBIN_MAGIC   UINT32_C(0x464c457f) /* an ELF file */
#define CT_FATBIN_MAGIC  UINT32_C(0xba55ed50)
#define CT_WRAPPER_MAGIC UINT32_C(0x466243b1)

/* Finds the length of an image that the driver has accepted. The image may be a cubin, a fat binary with or
 * without nvcc's wrapper, or text. Returns false for other images. */
bool ct_image_bytes(uint64_t image, uint64_t *bytes);
/* Returns the name of the image's only kernel, or NULL if the image may have several kernels or none. The
 * name points into the image and is not NUL-terminated. */
const char *ct_image_only_kernel(uint64_t image, size_t *name_bytes);

#endif
