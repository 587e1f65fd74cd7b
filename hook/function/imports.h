/* Exchanges entries in loaded objects' tables that lead to the driver. If a visit has loaded the hook
 * (proto/visit.h), also exchanges entries that lead to functions that the hook exports. */
#ifndef CT_IMPORTS_H
#define CT_IMPORTS_H

#include "symbol.h"

#include <stdbool.h>

/* Replaces addresses of the driver (driver_addresses.h) with stubs, in the tables of all objects loaded since
 * the last call of this function. Does not change entries that lead to a function with the same name in
 * another library. */
void ct_imports_take(void);
/* If a visit has loaded the hook, restores the exchanged entries. The next ct_imports_take() then reads all
 * objects again. Returns false and changes nothing if another thread is exchanging entries. Takes no lock,
 * since a visit makes a stopped thread call this at any instruction. */
bool ct_imports_put_back(void);

#endif
