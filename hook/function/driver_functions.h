/* Finds the driver's functions, and stands in front of them. */
#ifndef CT_DRIVER_FUNCTIONS_H
#define CT_DRIVER_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Finds the driver and its functions if libcuda is loaded, and takes the ways in: the driver's slots, else
 * the tables of what was linked against it. Later what was loaded since, where that wants it. True once the
 * driver is known. May wait for whoever is loading something. A driver in another namespace (dlmopen) is
 * found when something is looked up by a handle of it: each time where `is_asked`, for a name of the
 * driver's. */
bool ct_driver_look(void *handle, bool is_asked);
/* Finds the driver and takes its functions in a process that the hook has come into late (proto/visit.h), by
 * the visit's slots, too. Returns how many come by slots. May wait for a thread that is loading a library. */
struct ct_visit;
uint32_t ct_driver_take_late(const struct ct_visit *visit);
/* True if some functions of a second image of the driver come by their names. */
bool ct_driver_second_by_names(void);
/* Puts the driver's slots back, see ct_slots_put_back(). */
void ct_driver_put_back(bool checks);
/* Handlers of fork(): before it; after it, in the parent; in the child, which has one thread. */
void ct_driver_fork_begins(void);
void ct_driver_fork_ends(void);
void ct_driver_fork_child(void);
/* The real driver's `name`, NULL when libcuda is not loaded or lacks it. Never loads libcuda. */
void *ct_driver_symbol(const char *name);
/* Writes the numbers of functions by each way, and of known images, into a segment. */
struct ct_segment;
void ct_driver_tell(struct ct_segment *segment);

#endif
