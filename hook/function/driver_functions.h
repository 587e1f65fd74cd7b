/* Finds the driver's functions and interposes on them. */
#ifndef CT_DRIVER_FUNCTIONS_H
#define CT_DRIVER_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Finds the driver and its functions if libcuda is loaded. Redirects calls by the driver's slots. Calls of
 * functions without a slot are redirected by the tables of objects linked to the driver, including objects
 * loaded after the last ct_driver_look(). Returns true if the driver is known. May wait for another thread
 * that is loading a library. A driver in another namespace (dlmopen) is found by a look-up with a handle in
 * that namespace. Set `is_asked` if the look-up is for a name of the driver. Such a look-up always searches
 * the handle's namespace. */
bool ct_driver_look(void *handle, bool is_asked);
/* Finds the driver and redirects its functions after a visit has loaded the hook into the process
 * (proto/visit.h). Also exchanges the slots that the visit has made. Returns the number of functions that are
 * intercepted by slots. May wait for a thread that is loading a library. */
struct ct_visit;
uint32_t ct_driver_take_late(const struct ct_visit *visit);
/* True if some functions of a second image of the driver are intercepted by name. */
bool ct_driver_second_by_names(void);
/* Restores the driver's slots; see ct_slots_put_back(). */
void ct_driver_put_back(bool checks);
/* Handlers of fork(). They run before it, after it in the parent, and in the child, which has one thread. */
void ct_driver_fork_begins(void);
void ct_driver_fork_ends(void);
void ct_driver_fork_child(void);
/* Returns the address of the real driver's function `name`, or NULL if libcuda is not loaded or lacks the
 * function. Never loads libcuda. */
void *ct_driver_symbol(const char *name);
/* Stores the number of functions intercepted in each way, and the number of known images, in a segment. */
struct ct_segment;
void ct_driver_tell(struct ct_segment *segment);

#endif
