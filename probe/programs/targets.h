/* The functions of a library that receive probes. */
#ifndef CT_PROBE_TARGETS_H
#define CT_PROBE_TARGETS_H

#include "elf_reader.h"
#include "functions.h"
#include "selection.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_targets {
    uint64_t *offset; /* of the probe in the file */
    uint64_t *number; /* number of the function (functions.h) */
    uint32_t count;
    uint32_t left_out; /* functions for which there is no number left */
};

/* Finds the driver functions that the library at `path` exports and the selection includes, and numbers them.
 * A function with several names is included only once. Returns 0, -ENODATA if there are no such functions, or
 * another -errno. */
int ct_targets_find(struct ct_targets *targets, const char *path, const struct ct_selection *selection,
                    struct ct_function_table *functions);
/* Returns whether the name could be a driver function's. */
bool ct_targets_is_driver_function(const char *name);
void ct_targets_free(struct ct_targets *targets);
/* Returns where to place the probe for the function at `offset`: at the first instruction that the kernel can
 * emulate instead of single-stepping it, or else at the function's entry. */
uint64_t ct_targets_place(const struct ct_elf *elf, uint64_t offset);

#endif
