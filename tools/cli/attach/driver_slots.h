/* Reads the driver's table of entry points in another process, by the same rules that the hook uses inside
 * the process (hook/function/slots.c). */
#ifndef CT_ATTACH_DRIVER_SLOTS_H
#define CT_ATTACH_DRIVER_SLOTS_H

#include "image.h"

struct ct_driver_slot {
    uint64_t export;   /* address of the exported function */
    uint64_t slot;     /* address of the pointer through which the export calls */
    uint64_t function; /* the value of the slot */
};

struct ct_driver_slots {
    struct ct_driver_slot *slots; /* sorted by slot address, each slot once */
    size_t count;
    size_t functions;   /* number of exported functions, with or without a slot */
    size_t breakpoints; /* number of functions with a breakpoint at their entry */
};

/* Returns whether a name begins with "cu" and an upper-case letter. The hook treats functions with such names
 * as driver functions. */
bool ct_driver_is_name(const char *name);

/* Returns 0 or -errno. Finds no slots if the form of the driver's code is unknown, or if the driver is not
 * relocated yet. */
int ct_driver_slots_find(struct ct_driver_slots *slots, const struct ct_image *driver);
void ct_driver_slots_free(struct ct_driver_slots *slots);

#endif
