/* Detects driver calls that the program's own allocator makes. */
#ifndef CT_ATTACH_ALLOCATOR_H
#define CT_ATTACH_ALLOCATOR_H

#include "area.h"
#include "target.h"

/* Returns whether the asking thread is inside the program's allocator, which may hold a lock of its own. Only
 * allocators other than the C library's are looked for, because that one never calls the driver. `end` is the
 * end of the thread's stack. The list of mappings must be up to date. */
bool ct_allocator_asks(const struct ct_target *target, const struct ct_area_data *data, uint64_t end);

#endif
