/* Kernels' names, by handle, and strings that the application registers. */
#ifndef CT_KERNEL_NAMES_H
#define CT_KERNEL_NAMES_H

#include "producer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts what changes the name of any handle; never 0. */
extern CT_LOCAL _Atomic uint32_t ct_names_version;

static inline struct ct_kernel_memo *ct_kernel_memo(struct ct_producer *producer, uint64_t handle)
{
    return &producer->kernels[handle * UINT64_C(0x9e3779b97f4a7c15) >> (64 - CT_KERNEL_MEMO_BITS)];
}

/* String number of a kernel's name, defined in the caller's lane if need be; 0 when unknown. `producer` is
 * busy. `alive` says that the driver has taken the handle for one. */
uint32_t ct_names_kernel(uint64_t handle, struct ct_producer *producer, bool alive);
/* `handle` was handed out and goes with `owner`; `name` is copied, NULL where the program did not say one.
 * `producer` is the frame's, NULL while nothing is recorded. */
void ct_names_learn(uint64_t handle, uint64_t owner, const char *name, const struct ct_producer *producer);
/* The same for a handle that has the name of the one with which it goes. */
void ct_names_alias(uint64_t handle, uint64_t of, const struct ct_producer *producer);
/* The driver told the program the name of `handle`. */
void ct_names_told(uint64_t handle, const char *name, const struct ct_producer *producer);
/* `handle` was handed out in a list of what `owner` has: its name is known if it was before, or if there is
 * no other kernel in the image. False when nothing can follow in the list. */
bool ct_names_listed(uint64_t handle, uint64_t owner, const struct ct_producer *producer);
/* A module or library was loaded by a call that began at `began`: what goes with an earlier one of that
 * handle is forgotten. `name` is that of its one kernel, `name_bytes` long, NULL where it is not known. */
void ct_names_load(uint64_t handle, uint64_t began, const char *name, size_t name_bytes,
                   const struct ct_producer *producer);
/* `owner` was unloaded by a call that began at `began` (ct_now()): what goes with it is forgotten. */
void ct_names_unload(uint64_t owner, uint64_t began);
/* A context was destroyed, and with it nobody knows whose functions. */
void ct_names_doubt(void);
/* Number of a text that the application means to name again, kept for good; 0 without memory. What exceeds
 * the limits of ct_texts_keep() gets the number of a text that says so. */
uint32_t ct_names_string(const char *text);
/* The text of such a number, and its length; NULL when there is no such, as in the child of a fork that came
 * while names were being written. */
const char *ct_names_text(uint64_t number, size_t *bytes);

#endif
