/* The runtime functions. A process may load several copies of libcudart, so these functions choose the copy
 * that a call belongs to. */
#ifndef CT_RUNTIME_FUNCTIONS_H
#define CT_RUNTIME_FUNCTIONS_H

#include "compiler.h"
#include "rows.h"

/* For each version, the code pages bound to the library whose functions are in the rows. A page's index is
 * its page number modulo CT_RUNTIME_CALLERS. The trampoline depends on this layout. */
enum { CT_RUNTIME_CALLERS = 1024 };
extern CT_LOCAL _Atomic uint64_t ct_runtime_callers[CT_RUNTIME_VERSIONS][CT_RUNTIME_CALLERS];

/* Returns the real function of row `row` for a call that will return to `caller`. Returns NULL if no library
 * with the row's version is loaded, or if it lacks the function. */
void *ct_runtime_real(uint32_t row, const void *caller);
/* Called if ct_runtime_real() returns NULL. Returns the function that the program would have found in another
 * library without the hook, or NULL if there is none. */
void *ct_runtime_elsewhere(uint32_t row);
/* Returns the stub for a function that dlsym found under a row's name, or NULL if no row contains the
 * function. */
void *ct_runtime_stub(const void *real, uint32_t row);
/* ct_runtime_look() searches for loaded copies of libcudart. Unlike ct_runtime_stub(),
 * ct_runtime_known_stub() considers only libraries that are already in the list, and may be called while the
 * loader's list is being read. */
void ct_runtime_look(void);
void *ct_runtime_known_stub(const void *real, uint32_t row);

#endif
