/* The driver's functions: where the real ones are, and which address is which of them. */
#ifndef CT_DRIVER_FUNCTIONS_H
#define CT_DRIVER_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Finds the real functions if libcuda is loaded; true once they are known. Cheap when they are. */
bool ct_driver_resolve(void);
/* The real driver's `name`, NULL when libcuda is not loaded or lacks it. Never loads libcuda. */
void *ct_driver_symbol(const char *name);
/* The stub for a real driver function, or NULL when `real` is none that the table knows. */
void *ct_driver_stub(const void *real);
/* A spare stub for `real`, named `name`; NULL when they are used up. */
void *ct_driver_spare(void *real, const char *name);
/* Finds what the program would have got for `row` without the hook, when the driver, or the runtime, is not
 * loaded or lacks the function: another library's, or NULL. */
void *ct_driver_fallback(uint32_t row);

#endif
