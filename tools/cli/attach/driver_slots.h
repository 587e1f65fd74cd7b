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
    struct ct_driver_slot *slots; /* sorted by address of the slot, each slot once */
    size_t count;
    size_t functions;   /* number of functions that the driver exports, with or without a slot */
    size_t breakpoints; /* number of functions with a breakpoint at their entry */
};

/* Returns whether a name begins with "cu" and an upper-case letter. The hook treats such a name as a function
 * of the driver. */
bool ct_driver_is_name(const char *name);

/* Returns 0 or -errno. It may find no slots, if the driver has no known shape or is not relocated yet. */
int ct_driver_slots_find(struct ct_driver_slots *slots, const struct ct_image *driver);
void ct_driver_slots_free(struct ct_driver_slots *slots);

#endif
