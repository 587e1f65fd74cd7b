/* Exchanges entries of loaded objects' tables that lead to the driver. After a visit (proto/visit.h), also
 * exchanges those that lead to functions exported by the hook. */
#ifndef CT_IMPORTS_H
#define CT_IMPORTS_H

#include "symbol.h"

#include <stdbool.h>

/* Puts stubs into the tables of all objects loaded since the last call, in place of addresses of the driver
 * (driver_addresses.h). Entries that lead to another library's function of the same name are left alone. */
void ct_imports_take(void);
/* After a visit, restores the entries exchanged. The next ct_imports_take() reads all objects again. Returns
 * false and changes nothing while another thread exchanges entries. Takes no lock, so that a visit can have a
 * stopped thread call it anywhere. */
bool ct_imports_put_back(void);

#endif
