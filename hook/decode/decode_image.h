/* Reads images of code that the program passes to the driver, to find their length and the name of their
 * kernel. */
#ifndef CT_DECODE_IMAGE_H
#define CT_DECODE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An image begins with one of these numbers, or is a text. */
#define CT_CUBIN_MAGIC   UINT32_C(0x464c457f) /* an ELF file */
#define CT_FATBIN_MAGIC  UINT32_C(0xba55ed50)
#define CT_WRAPPER_MAGIC UINT32_C(0x466243b1)

/* Finds the length of an image that the driver has accepted. It may be a cubin, a fat binary with or without
 * nvcc's wrapper, or a text. Returns false for other images. */
bool ct_image_bytes(uint64_t image, uint64_t *bytes);
/* Returns the name of the image's kernel if the image certainly has no other kernel, and NULL otherwise. The
 * name is in the image itself, without a NUL. */
const char *ct_image_only_kernel(uint64_t image, size_t *name_bytes);

#endif
