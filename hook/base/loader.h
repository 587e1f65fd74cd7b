/* The dynamic linker's own functions, behind the hook's. They may end the program's pending dlerror(), or
 * leave one of their own: symbol.h looks up without that. */
#ifndef CT_LOADER_H
#define CT_LOADER_H

#include "symbol.h"

#include <stdbool.h>

/* True if the C library knows the program's environment: not in calls from .preinit_array, or from malloc
 * while the loader starts the program. */
bool ct_loader_ready(void);
/* Those that come behind the hook: the C library's, or those of whoever stands in front of it; and the C
 * library's dlsym. Each may look up what the other has found. */
typedef void *ct_dlsym_function(void *handle, const char *name);
typedef void *ct_dlvsym_function(void *handle, const char *name, const char *version);
ct_dlsym_function *ct_dlsym_find(void);
ct_dlsym_function *ct_library_dlsym_find(void);
ct_dlvsym_function *ct_dlvsym_find(void);
/* The C library's dlsym, for whatever handle. */
void *ct_loader_symbol(void *handle, const char *name);
/* The real dlvsym; NULL where the C library has none (musl). */
void *ct_loader_versioned(void *handle, const char *name, const char *version);
/* The object of that file name in a handle's namespace (dlmopen), if that is another one than the program's.
 */
bool ct_loader_in_namespace(void *handle, const char *name, struct ct_object *object);
/* Finds what comes behind the hook in the order of look-up. */
void *ct_loader_next(const char *name);
/* Sees to it that the object stays loaded: one that came after the program's start is opened once more, which
 * ends a pending dlerror(). False when it is not there any more. */
bool ct_loader_pin(const struct ct_object *object);
/* True if the address is in the hook. */
bool ct_loader_is_own(const void *address);

#endif
