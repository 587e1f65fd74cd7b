/* Replaces hooks whose target is a pattern by a hook for each target that matches. */
#ifndef CT_PROBE_HOOK_EXPAND_H
#define CT_PROBE_HOOK_EXPAND_H

#include "hook_table.h"
#include "selection.h"

/* Replaces the patterns of the table. Targets on which no hook is possible are left out, and so are the
 * functions of the driver that `recorded` selects, because the probe records them itself. `recorded` is NULL
 * if there are none. A pattern that matches nothing, or more than the table has room for, stays in the table
 * after an error has been printed. Returns false if there was an error. */
bool ct_hook_expand(struct ct_hook_table *table, const struct ct_selection *recorded, int tracefs);

#endif
