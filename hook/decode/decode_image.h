/* Reads code images that the program passes to the driver. Finds an image's length and the name of its
 * kernel. */
#ifndef CT_DECODE_IMAGE_H
#define CT_DECODE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An image begins with either of these magic numbers, or is text. */
#define CT_CUBIN_MAGIC   UINT32_C(0x464c457f) /* an ELF file */
#define CT_FATBIN_MAGIC  UINT32_C(0xba55ed50)
#define CT_WRAPPER_MAGIC UINT32_C(0x466243b1)

/* Finds the length of an image that the driver has accepted. It may be a cubin, a fat binary with or without
 * nvcc's wrapper, or text. Returns false for other images. */
bool ct_image_bytes(uint64_t image, uint64_t *bytes);
/* Returns the name of the image's only kernel, or NULL if the image may have several kernels or none. The
 * name points into the image and is not NUL-terminated. */
const char *ct_image_only_kernel(uint64_t image, size_t *name_bytes);

#endif
