/* Shortens the demangled names of kernels. */
#ifndef CT_KERNEL_NAME_H
#define CT_KERNEL_NAME_H

#include <stddef.h>

/* Finds the function's own name in a demangled name: without its return type, namespaces, template arguments
 * and parameters. Returns a pointer into `demangled`, and sets *length to the number of bytes, which is zero
 * only if `demangled` is empty. Any string is accepted. */
const char *ct_kernel_name_short(const char *demangled, size_t *length);

#endif
