/* The runtime's functions, of which a process may hold several libraries: which one a call goes to. */
#ifndef CT_RUNTIME_FUNCTIONS_H
#define CT_RUNTIME_FUNCTIONS_H

#include "compiler.h"
#include "rows.h"

/* Holds, by version, pages of code whose references are bound to the library that the rows have, each at the
 * place of its number modulo the length. The trampoline knows the layout. */
enum { CT_RUNTIME_CALLERS = 1024 };
extern CT_LOCAL _Atomic uint64_t ct_runtime_callers[CT_RUNTIME_VERSIONS][CT_RUNTIME_CALLERS];

/* The real function for a call of `row` that returns to `caller`; NULL when no library of the row's version
 * is loaded or it lacks the function. */
void *ct_runtime_real(uint32_t row, const void *caller);
/* Finds what the program would have got for `row` without the hook when there is no such function: another
 * library's, or NULL. */
void *ct_runtime_elsewhere(uint32_t row);
/* The stub for a function that dlsym found under the name of a row; NULL when it is not one of the rows. */
void *ct_runtime_stub(const void *real, uint32_t row);
/* Looks for loaded libraries of the runtime. ct_runtime_known_stub() is ct_runtime_stub() for those that were
 * found before, and may be called while the loader's list is read. */
void ct_runtime_look(void);
void *ct_runtime_known_stub(const void *real, uint32_t row);

#endif
