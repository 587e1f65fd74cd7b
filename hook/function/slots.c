/* An export with any difference from a known shape keeps its slot, and its calls come by name. */
#include "slots.h"

#include "rows.h"
#include "slot_shape.h"

#include <string.h>

/* Finds the slot of an export; NULL unless it lies in the image's own data, and leads into its own code. */
static void **find_slot(const struct ct_object *image, const void *export)
{
    uint8_t code[CT_SLOT_CODE_BYTES] = { 0 };
    size_t bytes = sizeof(code);
    struct ct_slot_shape shape;
    while (bytes > 0 && ct_symbol_use(image, export, bytes) != CT_SEGMENT_TEXT)
        bytes--;
    if (!export || bytes == 0)
        return NULL;
    memcpy(code, export, bytes);
    if (!ct_slot_shape_read(code, (uintptr_t) export, &shape) ||
        ct_symbol_use(image, (void *)(uintptr_t)shape.ended, sizeof(uint32_t)) != CT_SEGMENT_DATA)
        return NULL;
    void **slot = (void **)(uintptr_t)shape.slot;
    const bool is_sound = (uintptr_t)slot % sizeof(*slot) == 0 &&
                          ct_symbol_use(image, slot, sizeof(*slot)) == CT_SEGMENT_DATA && *slot != export &&
                          ct_symbol_use(image, *slot, 1) == CT_SEGMENT_TEXT;
    return is_sound ? slot : NULL;
}

/* Holds which slots of the driver's table rows have, and which two rows have: those stay. */
enum { TABLE_SLOTS = 8192 };
struct table {
    void **first;
    uint8_t seen[TABLE_SLOTS / 8], shared[TABLE_SLOTS / 8];
};

/* Notes a slot; all are within the table's length of the first one. */
static void note(struct table *table, void **slot)
{
    if (!table->first)
        table->first = slot - TABLE_SLOTS / 2;
    const uint64_t index = (uint64_t)(slot - table->first);
    if (index >= TABLE_SLOTS)
        return;
    const uint8_t bit = (uint8_t)(1U << index % 8);
    table->shared[index / 8] |= table->seen[index / 8] & bit;
    table->seen[index / 8] |= bit;
}

static bool is_one_rows(const struct table *table, void **slot)
{
    const uint64_t index = (uint64_t)(slot - table->first);
    return index < TABLE_SLOTS && !(table->shared[index / 8] >> index % 8 & 1);
}

/* ---- taking and putting back ---- */

static void **slots[CT_ROW_COUNT]; /* those that were taken, by row */

uint32_t ct_slots_take(const struct ct_object *image)
{
    static struct table table;
    uint32_t taken = 0;
    for (uint32_t row = 0; row < CT_ROW_COUNT; row++) {
        slots[row] = find_slot(image, ct_rows[row].real);
        if (slots[row])
            note(&table, slots[row]);
    }
    for (uint32_t row = 0; row < CT_ROW_COUNT; row++) {
        void *stub = ct_row_stub(row);
        if (!slots[row] || !stub || !is_one_rows(&table, slots[row])) {
            slots[row] = NULL;
            continue;
        }
        ct_rows[row].real = *slots[row];
        ct_rows[row].way = CT_WAY_SLOTS;
        __atomic_store_n(slots[row], stub, __ATOMIC_RELEASE);
        taken++;
    }
    return taken;
}

void ct_slots_take_again(void)
{
    for (uint32_t row = 0; row < CT_ROW_COUNT; row++) {
        void *real = ct_rows[row].real;
        if (slots[row])
            __atomic_compare_exchange_n(slots[row], &real, ct_row_stub(row), false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED);
    }
}

void ct_slots_put_back(void)
{
    for (uint32_t row = 0; row < CT_ROW_COUNT; row++) {
        void *stub = ct_row_stub(row);
        if (slots[row])
            __atomic_compare_exchange_n(slots[row], &stub, ct_rows[row].real, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED);
    }
}
