/* Replaces code of another process while all of its threads are stopped outside the replaced bytes. */
#ifndef CT_ATTACH_PATCHES_H
#define CT_ATTACH_PATCHES_H

#include "inline_plan.h"
#include "process_memory.h"

struct ct_patches {
    struct ct_memory *memory;              /* its mappings are read again before each try */
    const struct ct_inline_patch *patches; /* by address */
    size_t count;
    /* Results. */
    size_t written; /* the code of the others has been changed by another tool */
    uint64_t tries, stopped_ns, longest_ns, took_ns;
};

/* Writes all or none. 0 or -errno: -EBUSY if at each try a thread was inside replaced bytes, -ETIMEDOUT if
 * one did not stop, -EMLINK if another process has the same memory, -EPERM, -ESRCH, -EIO if the code cannot
 * be written. */
int ct_patches_write(struct ct_patches *patches);

#endif
