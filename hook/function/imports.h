/* Exchanges the entries in loaded objects' import tables that lead to the driver. If a visit has loaded the
 * hook (proto/visit.h), also exchanges entries that lead to functions exported by the hook. */
#ifndef CT_IMPORTS_H
#define CT_IMPORTS_H

#include "symbol.h"

#include <stdbool.h>

/* Replaces driver addresses (driver_addresses.h) with stubs, in the tables of all objects loaded since the
 * last call to this function. Entries that lead to another library's function are not changed, even if that
 * function has the name of a driver function. */
void ct_imports_take(void);
/* If a visit has loaded the hook, restores the exchanged entries, so that the next ct_imports_take() reads
 * all objects again. Returns false and changes nothing if another thread is exchanging entries. Takes no
 * lock, since a visit may force a thread to call this function at any instruction. */
bool ct_imports_put_back(void);

#endif
