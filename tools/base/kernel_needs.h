/* Checks whether the kernel has everything that `cudatrace probe` needs. Used by the doctor, and by the probe
 * after the kernel has rejected its BPF programs. */
#ifndef CT_KERNEL_NEEDS_H
#define CT_KERNEL_NEEDS_H

#include <stdbool.h>

/* Returns whether the running kernel, or this process's PID namespace, lacks a feature that the probe needs.
 * If so, writes a message that names the feature and the remedy. */
enum { CT_LACK_BYTES = 256 };
bool ct_kernel_lacks(char lack[CT_LACK_BYTES]);

#endif
