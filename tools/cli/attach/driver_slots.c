#include "driver_slots.h"

#include "room.h"
#include "slot_shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Finds an exported function's slot. Returns false unless the function begins with known code and the slot is
 * in the image's own data. */
static bool read_export(const struct ct_image *driver, struct ct_memory_window *window, uint64_t export,
                        uint64_t *slot)
{
    uint8_t code[CT_SLOT_CODE_BYTES] = { 0 };
    size_t bytes = sizeof(code);
    struct ct_slot_shape shape;
    while (bytes > 0 && ct_image_use(driver, export, bytes) != CT_IMAGE_TEXT)
        bytes--;
    if (bytes == 0 || !ct_memory_read_near(window, export, code, bytes) ||
        !ct_slot_shape_read(code, export, &shape) ||
        ct_image_use(driver, shape.ended, sizeof(uint32_t)) != CT_IMAGE_DATA)
        return false;
    *slot = shape.slot;
    const struct ct_mapping *mapping = ct_memory_at(driver->memory, shape.slot);
    return shape.slot % sizeof(uint64_t) == 0 && mapping && mapping->is_writable &&
           ct_image_use(driver, shape.slot, sizeof(uint64_t)) == CT_IMAGE_DATA;
}

/* Returns whether the function has a breakpoint where debuggers and `cudatrace probe` set them. Breakpoints
 * are set at the first instruction, or after the comparison with which libcuda 535's functions begin. */
static bool has_breakpoint(struct ct_memory_window *window, uint64_t export)
{
    enum { BREAKPOINT = 0xcc };
    static const uint8_t compare[] = { 0x81, 0x3d };
    uint8_t code[CT_SLOT_COMPARE_BYTES + 1];
    return ct_memory_read_near(window, export, code, sizeof(code)) &&
           (code[0] == BREAKPOINT ||
            (memcmp(code, compare, sizeof(compare)) == 0 && code[CT_SLOT_COMPARE_BYTES] == BREAKPOINT));
}

/* Reads the slot's value. Returns false unless the slot points into the image's own code. */
static bool read_slot(const struct ct_image *driver, struct ct_memory_window *window,
                      struct ct_driver_slot *slot)
{
    return ct_memory_read_near(window, slot->slot, &slot->function, sizeof(slot->function)) &&
           slot->function != slot->export && ct_image_use(driver, slot->function, 1) == CT_IMAGE_TEXT;
}

static int by_export(const void *left, const void *right)
{
    const struct ct_driver_slot *a = left, *b = right;
    return (a->export > b->export) - (a->export < b->export);
}

static int by_slot(const void *left, const void *right)
{
    const struct ct_driver_slot *a = left, *b = right;
    if (a->slot != b->slot)
        return a->slot < b->slot ? -1 : 1;
    return a->export == b->export ? 0 : a->export < b->export ? -1 : 1;
}

/* Keeps one name per export, and drops slots that are shared by two exports. */
static size_t settle(struct ct_driver_slot *slots, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0, next; i < count; i = next) {
        bool is_one = true;
        for (next = i + 1; next < count && slots[next].slot == slots[i].slot; next++)
            is_one = is_one && slots[next].export == slots[i].export;
        if (is_one)
            slots[kept++] = slots[i];
    }
    return kept;
}

bool ct_driver_is_name(const char *name)
{
    return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

/* Collects the addresses of the driver's exported functions. */
static int list_exports(struct ct_driver_slots *slots, const struct ct_image *driver)
{
    size_t room = 0;
    for (size_t i = 0; i < driver->symbol_count; i++) {
        struct ct_driver_slot one = { 0 };
        const char *name = ct_image_function(driver, i, &one.export);
        if (!name || !ct_driver_is_name(name))
            continue;
        if (!ct_make_room(&slots->slots, slots->count, &room, sizeof(one)))
            return -ENOMEM;
        slots->slots[slots->count++] = one;
    }
    slots->functions = slots->count;
    return 0;
}

/* Reads all code first, and then all slots, both in address order, so that a few large reads suffice. */
static void keep_known(struct ct_driver_slots *slots, const struct ct_image *driver,
                       struct ct_memory_window *window)
{
    struct ct_driver_slot *all = slots->slots;
    size_t known = 0, kept = 0;
    qsort(all, slots->count, sizeof(*all), by_export);
    for (size_t i = 0; i < slots->count; i++) {
        all[known] = all[i];
        slots->breakpoints += has_breakpoint(window, all[i].export);
        known += read_export(driver, window, all[i].export, &all[known].slot);
    }
    qsort(all, known, sizeof(*all), by_slot);
    window->count = 0;
    for (size_t i = 0; i < known; i++) {
        all[kept] = all[i];
        kept += read_slot(driver, window, &all[kept]);
    }
    slots->count = settle(all, kept);
}

int ct_driver_slots_find(struct ct_driver_slots *slots, const struct ct_image *driver)
{
    *slots = (struct ct_driver_slots){ 0 };
    struct ct_memory_window *window = malloc(sizeof(*window));
    const int error = window ? list_exports(slots, driver) : -ENOMEM;
    if (error) {
        ct_driver_slots_free(slots);
    } else if (slots->count > 0) {
        window->memory = driver->memory;
        window->count = 0;
        keep_known(slots, driver, window);
    }
    free(window);
    return error;
}

void ct_driver_slots_free(struct ct_driver_slots *slots)
{
    free(slots->slots);
    *slots = (struct ct_driver_slots){ 0 };
}
