/* Finds the driver's functions and interposes on them. */
#ifndef CT_DRIVER_FUNCTIONS_H
#define CT_DRIVER_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Finds the driver and its functions if libcuda is loaded, and redirects calls through the driver's slots.
 * Calls to functions without a slot are redirected through the tables of objects linked to the driver,
 * including objects loaded since the last ct_driver_look(). Returns true if the driver is known. May wait for
 * another thread that is loading a library. A driver in another namespace (dlmopen) is found by a lookup
 * with a handle in that namespace. Set `is_asked` if a driver function is being looked up: the handle's
 * namespace is then searched in any case. */
bool ct_driver_look(void *handle, bool is_asked);
/* Finds the driver and redirects its functions after a visit has loaded the hook into the process
 * (proto/visit.h). Also exchanges the slots created by the visit. While another thread forks, that thread
 * exchanges the slots after its fork. Returns false if there are no slots. May wait for a thread that is
 * loading a library. */
struct ct_visit;
bool ct_driver_take_late(const struct ct_visit *visit);
/* True if some functions of a second driver image are intercepted by name. */
bool ct_driver_second_by_names(void);
/* Restores the driver's slots; see ct_slots_put_back(). */
void ct_driver_put_back(bool checks);
/* fork() handlers. They run before the fork, and afterwards in the parent and in the child, which has only
 * one thread. */
void ct_driver_fork_begins(void);
void ct_driver_fork_ends(void);
void ct_driver_fork_child(void);
/* Returns the address of the real driver function `name`, or NULL if libcuda is not loaded or lacks the
 * function. Never loads libcuda. */
void *ct_driver_symbol(const char *name);
/* Stores in a segment how many functions are intercepted in each way, and how many driver images are
 * known. */
struct ct_segment;
void ct_driver_tell(struct ct_segment *segment);

#endif
