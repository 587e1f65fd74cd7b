/* Maps addresses to the driver's functions, and chooses the address that a program gets for a function. */
#ifndef CT_DRIVER_ADDRESSES_H
#define CT_DRIVER_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

#define CT_DRIVER_FILE "libcuda.so.1"

/* Records the address of a row's function, as exported by the driver. The row must be filled. Requires the
 * process lock. */
void ct_driver_remember(const void *real, uint32_t row);
/* Publishes the recorded addresses, and the rows' `real` and `intercept`, to all threads. */
void ct_driver_publish(void);
/* Called in a fork's child, so that the next look-up finds the driver again. */
void ct_driver_forget(void);
bool ct_driver_is_known(void);

/* Returns the row of the function that the driver exports at that address, or CT_ROWS_ALL if there is
 * none. */
uint32_t ct_driver_row(const void *real);
/* True if the driver exports a function at that address. */
bool ct_driver_has(const void *real);
/* Returns the stub for the driver's function `real`. Returns NULL if that is not a known function, or if it
 * is intercepted by its slot. */
void *ct_driver_stub(const void *real);
/* Returns the address for a program that would have got `real` without the hook, which is a stub or `real`
 * itself. If `name` is set, an unknown function gets a fallback stub as long as there are any. */
void *ct_driver_instead(void *real, const char *name);

#endif
