/* Finds the driver's functions and interposes on them. */
#ifndef CT_DRIVER_FUNCTIONS_H
#define CT_DRIVER_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Finds the driver and its functions if libcuda is loaded. Redirects calls by the driver's slots, otherwise
 * by the tables of objects linked to it, including objects loaded since the last call. Returns true if the
 * driver is known. May wait for another thread that is loading something. A driver in another namespace
 * (dlmopen) is found by a look-up with a handle of that namespace. Such a look-up always searches if
 * `is_asked`, for a name of the driver's. */
bool ct_driver_look(void *handle, bool is_asked);
/* Finds the driver and takes its functions in a process that loaded the hook late (proto/visit.h). Also takes
 * the visit's slots. Returns the number of functions whose calls come by slots. May wait for a thread that is
 * loading a library. */
struct ct_visit;
uint32_t ct_driver_take_late(const struct ct_visit *visit);
/* True if some functions of a second image of the driver are called by name. */
bool ct_driver_second_by_names(void);
/* Restores the driver's slots; see ct_slots_put_back(). */
void ct_driver_put_back(bool checks);
/* Handlers of fork(): before it, after it in the parent, and in the child, which has one thread. */
void ct_driver_fork_begins(void);
void ct_driver_fork_ends(void);
void ct_driver_fork_child(void);
/* Returns the address of the real driver's `name`, NULL if libcuda is not loaded or lacks it. Never loads
 * libcuda. */
void *ct_driver_symbol(const char *name);
/* Writes the number of functions intercepted in each way, and of known images, into a segment. */
struct ct_segment;
void ct_driver_tell(struct ct_segment *segment);

#endif
