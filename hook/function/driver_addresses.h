/* Maps the driver's functions by address, and chooses the replacement that a program gets. */
#ifndef CT_DRIVER_ADDRESSES_H
#define CT_DRIVER_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

#define CT_DRIVER_FILE "libcuda.so.1"

/* Records the address at which the driver exports a row's function. The row must be filled. Requires the
 * process lock. */
void ct_driver_remember(const void *real, uint32_t row);
/* Lets all threads read the recorded addresses, and the rows' `real` and `intercept`. */
void ct_driver_publish(void);
/* In a fork's child: the next look-up finds the driver again. */
void ct_driver_forget(void);
bool ct_driver_is_known(void);

/* Returns the row of the function that the driver exports at that address, CT_ROWS_ALL if none. */
uint32_t ct_driver_row(const void *real);
/* True if the driver exports a function at that address. */
bool ct_driver_has(const void *real);
/* Returns the stub of a function of the driver. NULL if `real` is not a known function, or its calls come by
 * its slot. */
void *ct_driver_stub(const void *real);
/* Returns the address for a program that would have got `real`: its stub, or `real` itself. If `name` is set,
 * an unknown function gets a fallback stub, while there are any. */
void *ct_driver_instead(void *real, const char *name);

#endif
