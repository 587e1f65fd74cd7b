/* The dynamic linker's own functions, behind the hook's. They may end the program's pending dlerror(), or
 * leave one of their own: symbol.h looks up without that. */
#ifndef CT_LOADER_H
#define CT_LOADER_H

#include "symbol.h"

#include <stdbool.h>

/* True if the C library knows the program's environment: not in calls from .preinit_array, or from malloc
 * while the loader starts the program. */
bool ct_loader_ready(void);
/* The real dlsym, for whatever handle. */
void *ct_loader_symbol(void *handle, const char *name);
/* Finds what comes behind the hook in the order of look-up. */
void *ct_loader_next(const char *name);
/* Sees to it that the object stays loaded: one that came after the program's start is opened once more, which
 * ends a pending dlerror(). False when it is not there any more. */
bool ct_loader_pin(const struct ct_object *object);
/* True if the address is in the hook. */
bool ct_loader_is_own(const void *address);

#endif
