/* Maps addresses to driver functions, and chooses the address that a program gets for a function. */
#ifndef CT_DRIVER_ADDRESSES_H
#define CT_DRIVER_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

#define CT_DRIVER_FILE "libcuda.so.1"

/* Records the address at which the driver exports a row's function. The row must be filled in. Requires the
 * process lock. */
void ct_driver_remember(const void *real, uint32_t row);
/* Publishes the recorded addresses, and the rows' `real` and `intercept`, to all threads. */
void ct_driver_publish(void);
/* Called in the child of a fork, so that the next lookup searches for the driver again. */
void ct_driver_forget(void);
bool ct_driver_is_known(void);

/* Returns the row of the function exported by the driver at the address, or CT_ROWS_ALL if there is no such
 * function. */
uint32_t ct_driver_row(const void *real);
/* True if the driver exports a function at the address. */
bool ct_driver_has(const void *real);
/* Returns the stub for the driver function `real`, or NULL if the function is unknown or is intercepted by
 * its slot. */
void *ct_driver_stub(const void *real);
/* Returns the address to give to a program that would get `real` without the hook: a stub, or `real` itself.
 * If `name` is set, a function that is not in the table gets a fallback stub if any are left. */
void *ct_driver_instead(void *real, const char *name);

#endif
