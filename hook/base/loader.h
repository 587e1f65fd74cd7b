/* The dynamic linker's own functions, bypassing the hook's. They may clear the program's pending dlerror(),
 * or leave a new one. The look-ups of symbol.h leave dlerror() alone. */
#ifndef CT_LOADER_H
#define CT_LOADER_H

#include "symbol.h"

#include <stdbool.h>

/* True if the C library knows the program's environment. False in calls from .preinit_array, or from malloc
 * while the loader starts the program. */
bool ct_loader_ready(void);
/* ct_dlsym_find() and ct_dlvsym_find() return the functions that follow the hook's in look-up order. These
 * belong to the C library or to another interposer. ct_library_dlsym_find() returns the C library's own
 * dlsym. Either dlsym can look up a function that the other has found. */
typedef void *ct_dlsym_function(void *handle, const char *name);
typedef void *ct_dlvsym_function(void *handle, const char *name, const char *version);
ct_dlsym_function *ct_dlsym_find(void);
ct_dlsym_function *ct_library_dlsym_find(void);
ct_dlvsym_function *ct_dlvsym_find(void);
/* Calls the C library's dlsym with any handle. */
void *ct_loader_symbol(void *handle, const char *name);
/* Calls the next dlvsym. Returns NULL if the C library has none (musl). */
void *ct_loader_versioned(void *handle, const char *name, const char *version);
/* Finds the object with that file name in a handle's namespace (dlmopen). Returns false if there is none, or
 * if the handle is in the program's own namespace. */
bool ct_loader_in_namespace(void *handle, const char *name, struct ct_object *object);
/* Returns the definition that follows the hook's in look-up order. */
void *ct_loader_next(const char *name);
/* Keeps the object loaded. An object loaded after the program's start is opened once more, which clears a
 * pending dlerror(). Returns false if the object is no longer loaded. */
bool ct_loader_pin(const struct ct_object *object);
/* True if the address is in the hook. */
bool ct_loader_is_own(const void *address);

#endif
