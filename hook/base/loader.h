/* Calls the dynamic linker's own functions, bypassing the hook's. Unlike the lookups in symbol.h, the
 * functions in this header may clear the program's pending dlerror(), or set a new one. */
#ifndef CT_LOADER_H
#define CT_LOADER_H

#include "symbol.h"

#include <stdbool.h>

/* True if the C library knows the program's environment. Calls made from .preinit_array, or from malloc while
 * the loader starts the program, are made before the C library knows it. */
bool ct_loader_ready(void);
/* ct_dlsym_find() and ct_dlvsym_find() return the next dlsym and dlvsym after the hook's in lookup order: the
 * C library's or another interposer's. ct_library_dlsym_find() returns the C library's own dlsym. Either
 * dlsym can look up the same symbols. */
typedef void *ct_dlsym_function(void *handle, const char *name);
typedef void *ct_dlvsym_function(void *handle, const char *name, const char *version);
ct_dlsym_function *ct_dlsym_find(void);
ct_dlsym_function *ct_library_dlsym_find(void);
ct_dlvsym_function *ct_dlvsym_find(void);
/* Calls the C library's dlsym, with any kind of handle. */
void *ct_loader_symbol(void *handle, const char *name);
/* Calls the next dlvsym. Returns NULL if the C library has no dlvsym (musl). */
void *ct_loader_versioned(void *handle, const char *name, const char *version);
/* Finds the object with the given file name in a handle's namespace (dlmopen). Returns false if there is no
 * such object, or if that namespace is the program's own. */
bool ct_loader_in_namespace(void *handle, const char *name, struct ct_object *object);
/* Returns the next definition of `name` after the hook's in lookup order. */
void *ct_loader_next(const char *name);
/* Keeps the object loaded. If it was loaded after the program started, opens it once more, which clears a
 * pending dlerror(). Returns false if the object is no longer loaded. */
bool ct_loader_pin(const struct ct_object *object);
/* True if the address is inside the hook's library. */
bool ct_loader_is_own(const void *address);

#endif
