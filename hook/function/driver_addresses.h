/* Knows the driver's functions by their addresses, and says what a program is to get in their place. */
#ifndef CT_DRIVER_ADDRESSES_H
#define CT_DRIVER_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

#define CT_DRIVER_FILE "libcuda.so.1"

/* Remembers where the driver exports a row's function. The row is filled, and the process lock is held. */
void ct_driver_remember(const void *real, uint32_t row);
/* Lets all threads read what was remembered, and the rows' `real` and `way`. */
void ct_driver_publish(void);
/* In a fork's child: the next look-up finds the driver again. */
void ct_driver_forget(void);
bool ct_driver_is_known(void);

/* The row of the function that the driver exports at that address; CT_ROWS_ALL for none. */
uint32_t ct_driver_row(const void *real);
/* True if the driver exports a function at that address. */
bool ct_driver_has(const void *real);
/* Finds the stub of a function of the driver; NULL when `real` is none that is known, or its calls come by
 * its slot. */
void *ct_driver_stub(const void *real);
/* Answers a program that would have got `real`: with its stub, or `real` itself. With a name, a function that
 * is not known gets a spare stub, while there are any. */
void *ct_driver_instead(void *real, const char *name);

#endif
