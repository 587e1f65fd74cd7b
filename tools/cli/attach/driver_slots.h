/* The driver's table of its own entry points, read from outside by the same rules as in the process
 * (hook/function/slots.c). */
#ifndef CT_ATTACH_DRIVER_SLOTS_H
#define CT_ATTACH_DRIVER_SLOTS_H

#include "image.h"

struct ct_driver_slot {
    uint64_t export;   /* the function, as the driver exports it */
    uint64_t slot;     /* address of the pointer that the export calls through */
    uint64_t function; /* what that points to */
};

struct ct_driver_slots {
    struct ct_driver_slot *slots; /* by address of the slot, each once */
    size_t count;
    size_t functions;   /* that the driver exports, with a slot or without */
    size_t breakpoints; /* functions with a breakpoint at their entry */
};

/* "cu" and an upper-case letter: a name of the driver's, as the hook sees it. */
bool ct_driver_is_name(const char *name);

/* 0 or -errno. None may be found: the driver is of no known shape, or not yet relocated. */
int ct_driver_slots_find(struct ct_driver_slots *slots, const struct ct_image *driver);
void ct_driver_slots_free(struct ct_driver_slots *slots);

#endif
