/* If an exported function's code differs from the known shapes (slot_shape.h) in any way, its slot is not
 * exchanged, and its calls are intercepted by name.
 *
 * A driver, or a library that hardens programs, may protect the table's pages at any time. Just before
 * writing a page's slots, the hook checks with the kernel that the page is writable. If another thread
 * protects the page in the microsecond between the check and the store, the store will fault. Writing through
 * the kernel (process_vm_writev) would fail cleanly instead, but other threads might read a half-written
 * slot. */
#include "slots.h"

#include "rows.h"
#include "slot_shape.h"
#include "system.h"
#include "test_point.h"

#include <string.h>

/* ---- finding ---- */

/* An image's slot table. All slots are within TABLE_SLOTS / 2 of the first slot found. A slot shared by two
 * functions is not exchanged. */
enum { TABLE_SLOTS = 8192, SHARED = UINT16_MAX };
static_assert((int)CT_ROW_COUNT < (int)SHARED, "functions of slots");
static struct table {
    void **first;
    uint16_t functions[TABLE_SLOTS]; /* for each slot, the function's number plus 1; 0: none */
} tables[CT_DRIVERS];

/* Slots created by a visit for functions of the first image; NULL: none. */
static void **made[CT_ROW_COUNT];

/* Reads the shape of an exported function's code. Returns false if the shape is unknown. */
static bool read_shape(const struct ct_object *image, const void *export, struct ct_slot_shape *shape)
{
    uint8_t code[CT_SLOT_CODE_BYTES] = { 0 };
    size_t bytes = sizeof(code);
    while (bytes > 0 && ct_symbol_use(image, export, bytes) != CT_SEGMENT_TEXT)
        bytes--;
    if (!export || bytes == 0)
        return false;
    memcpy(code, export, bytes);
    return ct_slot_shape_read(code, (uintptr_t) export, shape) &&
           ct_symbol_use(image, (void *)(uintptr_t)shape->ended, sizeof(uint32_t)) == CT_SEGMENT_DATA;
}

/* Returns an exported function's slot, or NULL if there is none in the image's own data. */
static void **find_slot(const struct ct_object *image, const void *export)
{
    struct ct_slot_shape shape;
    if (!read_shape(image, export, &shape))
        return NULL;
    void **slot = (void **)(uintptr_t)shape.slot;
    const bool is_sound =
        (uintptr_t)slot % sizeof(*slot) == 0 && ct_symbol_use(image, slot, sizeof(*slot)) == CT_SEGMENT_DATA;
    return is_sound ? slot : NULL;
}

static void note(struct table *table, void **slot, uint32_t function)
{
    if (!table->first)
        table->first = slot - TABLE_SLOTS / 2;
    const uint64_t place = (uint64_t)(slot - table->first);
    if (place < TABLE_SLOTS)
        table->functions[place] = table->functions[place] ? SHARED : (uint16_t)(function + 1);
}

/* Returns the row for slot `place` of the table, or CT_ROWS_ALL if the slot must not be exchanged. */
static uint32_t row_at(uint32_t driver, uint32_t place)
{
    const uint16_t function = tables[driver].functions[place];
    if (function == 0 || function == SHARED)
        return CT_ROWS_ALL;
    const uint32_t row = CT_DRIVER_ROW(driver, function - 1U);
    return ct_row_stub(row) ? row : CT_ROWS_ALL;
}

/* Reads the slots in address order, and drops those that do not point into the image's own code or are not
 * writable. Returns how many are not writable. */
static uint32_t read_slots(uint32_t driver, const struct ct_object *image)
{
    struct table *const table = &tables[driver];
    struct ct_page page = { 0 };
    uint32_t refused = 0;
    for (uint32_t place = 0; table->first && place < TABLE_SLOTS; place++) {
        const uint32_t row = row_at(driver, place);
        void **slot = table->first + place;
        if (row == CT_ROWS_ALL)
            continue;
        const bool may_write = ct_page_writable(&page, slot);
        refused += !may_write;
        if (may_write && *slot != ct_rows[row].real && ct_symbol_use(image, *slot, 1) == CT_SEGMENT_TEXT) {
            ct_rows[row].real = *slot;
            ct_rows[row].intercept = CT_INTERCEPT_SLOTS;
        } else {
            table->functions[place] = 0;
        }
    }
    return refused;
}

uint32_t ct_slots_find(uint32_t driver, const struct ct_object *image)
{
    struct table *const table = &tables[driver];
    if (table->first) /* in a forked child whose parent had begun the search */
        memset(table, 0, sizeof(*table));
    if (driver == 0)
        memset(made, 0, sizeof(made));
    for (uint32_t function = 0; function < CT_ROW_COUNT; function++) {
        void **slot = find_slot(image, ct_rows[CT_DRIVER_ROW(driver, function)].real);
        if (slot)
            note(table, slot, function);
    }
    return read_slots(driver, image);
}

/* The slot is not used until the visit has written a jump through it. `real` must be set before the slot is
 * exchanged, because otherwise the stub would call the function, which would jump to the stub again. */
void ct_slots_add_made(uint32_t row, void **slot)
{
    if (row >= CT_ROW_COUNT || !ct_row_stub(row) || ct_rows[row].intercept == CT_INTERCEPT_SLOTS)
        return;
    made[row] = slot;
    if (*slot != ct_row_stub(row)) /* equal in the child of a fork if the parent was restoring the slot */
        ct_rows[row].real = *slot;
    ct_rows[row].intercept = CT_INTERCEPT_SLOTS;
}

/* ---- taking and restoring ---- */

/* Exchanges the contents of a slot. Returns true if the slot contains the wanted address afterwards. */
static bool exchange_one(uint32_t row, void **slot, bool to_stub)
{
    void *stub = ct_row_stub(row), *real = ct_rows[row].real;
    void *before = to_stub ? real : stub, *const after = to_stub ? stub : real;
    const bool is_done =
        __atomic_compare_exchange_n(slot, &before, after, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED) ||
        before == after;
    CT_TEST_POINT("slots.exchanged");
    return is_done;
}

/* Exchanges the contents of all slots of an image. Returns the number of slots that contain the wanted
 * address afterwards. */
static uint32_t exchange(uint32_t driver, bool to_stubs, bool checks)
{
    const struct table *const table = &tables[driver];
    struct ct_page page = { 0 };
    uint32_t count = 0;
    for (uint32_t place = 0; table->first && place < TABLE_SLOTS; place++) {
        const uint32_t row = row_at(driver, place);
        void **slot = table->first + place;
        if (row != CT_ROWS_ALL && (!checks || ct_page_writable(&page, slot)))
            count += exchange_one(row, slot, to_stubs);
    }
    for (uint32_t row = 0; driver == 0 && row < CT_ROW_COUNT; row++) {
        if (made[row] && (!checks || ct_page_writable(&page, made[row])))
            count += exchange_one(row, made[row], to_stubs);
    }
    return count;
}

/* Forgets the slots created by the visit, because the next visit may create slots for other functions. `real`
 * is kept, since it points to relocated instructions, which behave like the function even without a jump
 * through the slot. */
static void forget_made(void)
{
    for (uint32_t row = 0; row < CT_ROW_COUNT; row++) {
        if (made[row])
            ct_rows[row].intercept = CT_INTERCEPT_NAMES;
        made[row] = NULL;
    }
}

uint32_t ct_slots_take(uint32_t driver)
{
    return exchange(driver, true, true);
}

void ct_slots_put_back(bool checks)
{
    for (uint32_t driver = 0; driver < CT_DRIVERS; driver++)
        exchange(driver, false, checks);
    forget_made();
}
