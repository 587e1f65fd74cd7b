/* The driver's table of its own entry points, read from outside by the same rules as in the process
 * (hook/function/slots.c). */
#ifndef CT_ATTACH_DRIVER_SLOTS_H
#define CT_ATTACH_DRIVER_SLOTS_H

#include "image.h"

struct ct_driver_slot {
    uint64_t export;   /* the function, as the driver exports it */
    uint64_t slot;     /* address of the pointer that the export calls through */
    uint64_t function; /* the value of the slot */
};

struct ct_driver_slots {
    struct ct_driver_slot *slots; /* by address of the slot, each once */
    size_t count;
    size_t functions;   /* exported by the driver, with or without a slot */
    size_t breakpoints; /* functions with a breakpoint at their entry */
};

/* Returns whether a name is "cu" and an upper-case letter, which the hook takes as a function of the
 * driver. */
bool ct_driver_is_name(const char *name);

/* Returns 0 or -errno. No slots may be found: the driver has no known shape, or is not yet relocated. */
int ct_driver_slots_find(struct ct_driver_slots *slots, const struct ct_image *driver);
void ct_driver_slots_free(struct ct_driver_slots *slots);

#endif
