/* Checks whether the kernel has what `cudatrace probe` needs. Used by the probe, after the kernel has refused
 * its programs, and by the doctor. */
#ifndef CT_KERNEL_NEEDS_H
#define CT_KERNEL_NEEDS_H

#include <stdbool.h>

/* Returns whether the running kernel lacks a requirement. Writes a text that names it, and the remedy. */
enum { CT_LACK_BYTES = 256 };
bool ct_kernel_lacks(char lack[CT_LACK_BYTES]);

#endif
