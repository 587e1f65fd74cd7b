/* The runtime's functions. A process may load several libraries of the runtime. This file chooses the library
 * for a call. */
#ifndef CT_RUNTIME_FUNCTIONS_H
#define CT_RUNTIME_FUNCTIONS_H

#include "compiler.h"
#include "rows.h"

/* For each version, pages of code that is bound to the library whose functions are in the rows. The index of
 * a page is its number modulo CT_RUNTIME_CALLERS. The trampoline depends on this layout. */
enum { CT_RUNTIME_CALLERS = 1024 };
extern CT_LOCAL _Atomic uint64_t ct_runtime_callers[CT_RUNTIME_VERSIONS][CT_RUNTIME_CALLERS];

/* Returns the real function for a call of `row` that returns to `caller`. Returns NULL if no library of the
 * row's version is loaded, or if the library lacks the function. */
void *ct_runtime_real(uint32_t row, const void *caller);
/* Called if ct_runtime_real() returns NULL. Returns another library's function that the program would have
 * found for `row` without the hook, or NULL if there is none. */
void *ct_runtime_elsewhere(uint32_t row);
/* Returns the stub for a function that dlsym found under the name of a row, or NULL if the function is in no
 * row. */
void *ct_runtime_stub(const void *real, uint32_t row);
/* ct_runtime_look() searches for loaded libraries of the runtime. ct_runtime_known_stub() is like
 * ct_runtime_stub(), but knows only libraries that are already listed, and may be called while the loader's
 * list is being read. */
void ct_runtime_look(void);
void *ct_runtime_known_stub(const void *real, uint32_t row);

#endif
