/* Exchanges what loaded objects were linked against: the entries of their tables that lead to the driver. */
#ifndef CT_IMPORTS_H
#define CT_IMPORTS_H

#include "symbol.h"

#include <stdbool.h>

/* Puts stubs into the tables of all objects that were loaded since the last time, in place of addresses of
 * `driver` (driver_addresses.h). Entries that lead to another library's function of that name stay. */
void ct_imports_take(const struct ct_object *driver);

#endif
