/* Arrays that grow. */
#ifndef CT_ROOM_H
#define CT_ROOM_H

#include <stdbool.h>
#include <stdlib.h>

/* Has an array with room for `*room` items have room for one more than `count`; false, with all as it was,
 * without memory. `array` is the address of the pointer to it. */
static inline bool ct_make_room(void *array, size_t count, size_t *room, size_t item_bytes)
{
    void **items = array;
    const size_t wanted = *room ? *room * 2 : 64;
    if (count < *room)
        return true;
    void *larger = realloc(*items, wanted * item_bytes);
    if (!larger)
        return false;
    *items = larger;
    *room = wanted;
    return true;
}

#endif
