/* The names of kernels by handle, and strings that the application registers. */
#ifndef CT_KERNEL_NAMES_H
#define CT_KERNEL_NAMES_H

#include "producer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts changes to handle names. Never 0. */
extern CT_LOCAL _Atomic uint32_t ct_names_version;

static inline struct ct_kernel_memo *ct_kernel_memo(struct ct_producer *producer, uint64_t handle)
{
    return &producer->kernels[handle * UINT64_C(0x9e3779b97f4a7c15) >> (64 - CT_KERNEL_MEMO_BITS)];
}

/* Returns the string ID of a kernel's name, or 0 if the name is unknown. Defines the string in the caller's
 * lane if necessary. The lane of `producer` is held. `alive` is true if the driver has accepted the handle as
 * a kernel. */
uint32_t ct_names_kernel(uint64_t handle, struct ct_producer *producer, bool alive);
/* Notes that the program obtained `handle`, which is owned by `owner`. `name` is copied, and is NULL if the
 * program gave no name. `producer` is the call frame's producer, which is NULL while nothing is recorded. */
void ct_names_learn(uint64_t handle, uint64_t owner, const char *name, const struct ct_producer *producer);
/* Notes that the program obtained `handle`, which is owned by `of` and has the same name as `of`. */
void ct_names_alias(uint64_t handle, uint64_t of, const struct ct_producer *producer);
/* Notes the name of `handle`, as reported by the driver to the program or to the hook. `name` is NULL if the
 * driver reports none. */
void ct_names_told(uint64_t handle, const char *name, const struct ct_producer *producer);
/* Returns true if the name of `handle` is unknown, and the driver has not reported that there is none. */
bool ct_names_query(uint64_t handle);
/* Notes that the program obtained `handle` in a list of the handles owned by `owner`. The handle's name is
 * known if it was known before, or if the image contains no other kernel. Returns false if no other handle
 * can follow in the list. */
bool ct_names_listed(uint64_t handle, uint64_t owner, const struct ct_producer *producer);
/* Notes that a module or library was loaded by a call that began at `began`. Forgets all handles owned by an
 * earlier module or library with the same handle. `name`, of `name_bytes` bytes, is the name of the image's
 * only kernel, or NULL if unknown. */
void ct_names_load(uint64_t handle, uint64_t began, const char *name, size_t name_bytes,
                   const struct ct_producer *producer);
/* Forgets all handles owned by `owner`, which was unloaded by a call that began at `began` (ct_now()). */
void ct_names_unload(uint64_t owner, uint64_t began);
/* Notes that a context was destroyed, together with functions that the hook cannot identify. */
void ct_names_doubt(void);
/* Returns the ID of a string to which the application will refer again, and which is kept permanently.
 * Returns 0 if out of memory. Strings beyond the limits of ct_texts_keep() share the ID of a placeholder. */
uint32_t ct_names_string(const char *text);
/* Returns the string for an ID from ct_names_string(), and sets *bytes to its length. Returns NULL for other
 * IDs, such as those invalidated because the parent forked while names were being written. */
const char *ct_names_text(uint64_t number, size_t *bytes);

#endif
