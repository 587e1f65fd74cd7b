/* Arrays that grow. */
#ifndef CT_ROOM_H
#define CT_ROOM_H

#include <stdbool.h>
#include <stdlib.h>

/* Ensures that an array with `count` items has room for `more` additional items. `*room` is the number of
 * items that currently fit, and `array` is the address of the pointer to the array. If out of memory, returns
 * false and changes nothing. */
static inline bool ct_make_room_for(void *array, size_t count, size_t more, size_t *room, size_t item_bytes)
{
    void **items = array;
    if (count + more <= *room)
        return true;
    const size_t wanted = 2 * (count + more > 8 ? count + more : 8);
    void *larger = realloc(*items, wanted * item_bytes);
    if (!larger)
        return false;
    *items = larger;
    *room = wanted;
    return true;
}

/* Ensures that the array has room for one additional item. */
static inline bool ct_make_room(void *array, size_t count, size_t *room, size_t item_bytes)
{
    return ct_make_room_for(array, count, 1, room, item_bytes);
}

#endif
