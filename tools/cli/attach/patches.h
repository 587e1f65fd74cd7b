/* Overwrites code in another process while all of its threads are stopped outside the overwritten bytes. */
#ifndef CT_ATTACH_PATCHES_H
#define CT_ATTACH_PATCHES_H

#include "inline_plan.h"
#include "process_memory.h"

struct ct_patches {
    struct ct_memory *memory;              /* the process's memory, whose mappings are re-read before each
                                            * try */
    const struct ct_inline_patch *patches; /* sorted by address */
    size_t count;
    /* Results. */
    size_t written; /* number of patches written; the rest were skipped because another tool has changed the
                     * code there */
    uint64_t tries, stopped_ns, longest_ns, took_ns;
};

/* Writes all patches, or none on error. Returns 0, or -EBUSY if a thread was inside the replaced bytes at
 * each try. Returns -ETIMEDOUT if a thread did not stop, -EMLINK if another process shares the memory, or
 * -EIO if the code cannot be written. Other errors are -EPERM and -ESRCH. */
int ct_patches_write(struct ct_patches *patches);

#endif
