/* Which address is which of the driver's functions, and what a program is to get in its place. */
#ifndef CT_DRIVER_ADDRESSES_H
#define CT_DRIVER_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

/* The driver exports a row's function there. The process lock is held, and nothing was published. */
void ct_driver_remember(const void *real, uint32_t row);
/* All that was remembered, and the rows' `real` and `way`, may be read from now on. */
void ct_driver_publish(void);
bool ct_driver_is_known(void);

/* Whether `real`, which the dynamic linker has found for a name of the driver's, is the driver's own. */
bool ct_driver_has(const void *real);
/* The stub that a real function of the driver is to be called by; NULL when `real` is none that is known, or
 * its calls come by its slot. */
void *ct_driver_stub(const void *real);
/* What a program is to get that would have got `real`: its stub, or `real` itself. With a name, a function
 * that is not known gets a spare stub, while there are any. */
void *ct_driver_instead(void *real, const char *name);

#endif
