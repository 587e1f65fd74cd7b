/* Knows the shapes of exports in libcuda 535 and 580 for x86-64: a look at a word that says that the
 * driver has ended, then a jump through the slot, or a call behind which the export returns itself, and
 * before which it has copied what the function has on the stack. The reader is strict: what is not wholly as
 * it should be stays as it is, and comes by its name. */
#include "slots.h"

#include "rows.h"

#include <string.h>

struct shape {
    uint8_t prologue[12];
    uint8_t prologue_bytes;
    uint8_t through[2]; /* the instruction that goes through the slot, its distance behind it */
    uint8_t reach;      /* bytes behind the branch in which it stands */
};
static const struct shape shapes[] = {
    /* jmp *slot(%rip) */
    { { 0 }, 0, { 0xff, 0x25 }, 40 },
    /* push %rbp; mov %rsp, %rbp; push %r12; sub $8, %rsp … call *slot(%rip) */
    { { 0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x48, 0x83, 0xec, 0x08 }, 10, { 0xff, 0x15 }, 60 },
};

enum { CODE_MOST = 96, COMPARE_BYTES = 10, BRANCH_MOST = 6, THROUGH_BYTES = 6 };
static_assert(sizeof(shapes[0].prologue) + COMPARE_BYTES + BRANCH_MOST + 60 + THROUGH_BYTES <= CODE_MOST,
              "an export's bytes");

static int32_t read_distance(const uint8_t *from)
{
    int32_t distance;
    memcpy(&distance, from, sizeof(distance));
    return distance;
}

/* Reads cmpl $ENDED, word(%rip); je. Returns where the code goes on behind both, NULL for anything else. */
static const uint8_t *behind_branch(const struct ct_object *image, const uint8_t *code, const uint8_t *at)
{
    enum { ENDED = 0x321cba00, JE_SHORT = 0x74, JE_BYTES = 2, JE_NEAR_BYTES = BRANCH_MOST };
    if (code[0] != 0x81 || code[1] != 0x3d || read_distance(code + 6) != ENDED)
        return NULL;
    const uint8_t *branch = code + COMPARE_BYTES, *word = at + COMPARE_BYTES + read_distance(code + 2);
    if (ct_symbol_use(image, word, sizeof(uint32_t)) != CT_SEGMENT_DATA)
        return NULL;
    if (branch[0] == JE_SHORT)
        return branch + JE_BYTES;
    return branch[0] == 0x0f && branch[1] == 0x84 ? branch + JE_NEAR_BYTES : NULL;
}

/* `code` is a copy of CODE_MOST bytes, zeros behind the image's end; `at` is where they stand. */
static void **slot_of_shape(const struct ct_object *image, const uint8_t *code, const uint8_t *at,
                            const struct shape *shape)
{
    if (memcmp(code, shape->prologue, shape->prologue_bytes) != 0)
        return NULL;
    const uint8_t *begin = behind_branch(image, code + shape->prologue_bytes, at + shape->prologue_bytes);
    const uint8_t *through = begin;
    while (through && through < begin + shape->reach &&
           memcmp(through, shape->through, sizeof(shape->through)) != 0)
        through++;
    if (!through || through == begin + shape->reach)
        return NULL;
    const uint8_t *behind = at + (through - code) + THROUGH_BYTES;
    return (void **)(uintptr_t)(behind + read_distance(through + sizeof(shape->through)));
}

/* Finds the slot of an export; NULL unless it lies in the image's own data, and leads into its own code. */
static void **find_slot(const struct ct_object *image, const void *export)
{
    uint8_t code[CODE_MOST] = { 0 };
    size_t bytes = sizeof(code);
    while (bytes > 0 && ct_symbol_use(image, export, bytes) != CT_SEGMENT_TEXT)
        bytes--;
    if (!export || bytes == 0)
        return NULL;
    memcpy(code, export, bytes);
    for (size_t i = 0; i < CT_ARRAY_LENGTH(shapes); i++) {
        void **slot = slot_of_shape(image, code, export, &shapes[i]);
        if (slot && (uintptr_t)slot % sizeof(*slot) == 0 &&
            ct_symbol_use(image, slot, sizeof(*slot)) == CT_SEGMENT_DATA && *slot != export &&
            ct_symbol_use(image, *slot, 1) == CT_SEGMENT_TEXT)
            return slot;
    }
    return NULL;
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

uint32_t ct_slots_take(const struct ct_object *image)
{
    static void **slots[CT_ROW_COUNT];
    static struct table table;
    uint32_t taken = 0;
    for (uint32_t row = 0; row < CT_ROW_COUNT; row++) {
        slots[row] = find_slot(image, ct_rows[row].real);
        if (slots[row])
            note(&table, slots[row]);
    }
    for (uint32_t row = 0; row < CT_ROW_COUNT; row++) {
        void *stub = ct_row_stub(row);
        if (!slots[row] || !stub || !is_one_rows(&table, slots[row]))
            continue;
        ct_rows[row].real = *slots[row];
        ct_rows[row].way = CT_WAY_SLOTS;
        __atomic_store_n(slots[row], stub, __ATOMIC_RELEASE);
        taken++;
    }
    return taken;
}
