/* The types of the kernel's functions, from the type information (BTF) of the kernel and of its modules. */
#ifndef CT_PROBE_KERNEL_TYPES_H
#define CT_PROBE_KERNEL_TYPES_H

#include "list_lines.h"

struct ct_kernel_types;

/* Returns NULL if the kernel has no BTF, or if the BTF cannot be read. */
struct ct_kernel_types *ct_kernel_types_open(void);
void ct_kernel_types_close(struct ct_kernel_types *types);

/* Adds the function's arguments and its result as fields, and sets its prototype. `module` is NULL for the
 * kernel itself. Returns false if the types are not known: many modules are built without BTF. */
bool ct_kernel_types_describe(struct ct_kernel_types *types, const char *module, const char *function,
                              struct ct_list_fields *fields);

#endif
