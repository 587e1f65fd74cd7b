/* Replaces code of another process while all of its threads are stopped outside the replaced bytes. */
#ifndef CT_ATTACH_PATCHES_H
#define CT_ATTACH_PATCHES_H

#include "inline_plan.h"
#include "process_memory.h"

struct ct_patches {
    struct ct_memory *memory;              /* its mappings are read again before each try */
    const struct ct_inline_patch *patches; /* sorted by address */
    size_t count;
    /* Results. */
    size_t written; /* number of patches written; another tool has changed the code at the others */
    uint64_t tries, stopped_ns, longest_ns, took_ns;
};

/* Writes all patches, or none if it fails. Returns 0 or -errno. -EBUSY: at each try a thread was inside
 * replaced bytes. -ETIMEDOUT: a thread did not stop. -EMLINK: another process has the same memory. -EIO: the
 * code cannot be written. Also -EPERM and -ESRCH. */
int ct_patches_write(struct ct_patches *patches);

#endif
