/* The runtime's functions. A process may load several libraries of the runtime; this chooses the one for a
 * call. */
#ifndef CT_RUNTIME_FUNCTIONS_H
#define CT_RUNTIME_FUNCTIONS_H

#include "compiler.h"
#include "rows.h"

/* Per version, the pages of code bound to the library in the rows. A page is at the index of its number
 * modulo the length. The trampoline knows the layout. */
enum { CT_RUNTIME_CALLERS = 1024 };
extern CT_LOCAL _Atomic uint64_t ct_runtime_callers[CT_RUNTIME_VERSIONS][CT_RUNTIME_CALLERS];

/* Returns the real function for a call of `row` that returns to `caller`. NULL if no library of the row's
 * version is loaded, or it lacks the function. */
void *ct_runtime_real(uint32_t row, const void *caller);
/* Called if there is no such function. Returns another library's function that the program would have found
 * for `row` without the hook, or NULL. */
void *ct_runtime_elsewhere(uint32_t row);
/* Returns the stub for a function that dlsym found under the name of a row, NULL if the function is in no
 * row. */
void *ct_runtime_stub(const void *real, uint32_t row);
/* ct_runtime_look() searches for loaded libraries of the runtime. ct_runtime_known_stub() is
 * ct_runtime_stub() for libraries found before, and may be called while the loader's list is read. */
void ct_runtime_look(void);
void *ct_runtime_known_stub(const void *real, uint32_t row);

#endif
