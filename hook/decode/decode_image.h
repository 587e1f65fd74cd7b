/* Images of code that the program passes to the driver: their length, and the name of their kernel. */
#ifndef CT_DECODE_IMAGE_H
#define CT_DECODE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An image begins with a number of this list, or it is text. */
#define CT_CUBIN_MAGIC   UINT32_C(0x464c457f) /* an ELF file */
#define CT_FATBIN_MAGIC  UINT32_C(0xba55ed50)
#define CT_WRAPPER_MAGIC UINT32_C(0x466243b1)

/* Finds the length of an image that the driver has accepted: a cubin, a fat binary, a fat binary in the
 * wrapper of nvcc, or text. Returns false for anything else. */
bool ct_image_bytes(uint64_t image, uint64_t *bytes);
/* Returns the name of the image's kernel if it certainly has no other, else NULL. The name is in the image
 * itself, without a NUL. */
const char *ct_image_only_kernel(uint64_t image, size_t *name_bytes);

#endif
