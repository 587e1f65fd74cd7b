/* Plans slots for functions that have none. A jump replaces the first five bytes of a function. It leads to
 * an area near the image, where another jump takes the address from a slot. The slot points to a copy of the
 * replaced instructions, which ends with a jump back. Exchanging the slot diverts the function's calls, as
 * with the driver's own slots.
 *
 * This module writes nothing. Its caller first writes the area, and then the patches, while every thread is
 * stopped outside the replaced bytes. The area must stay mapped, because a thread may be inside it. It holds
 * the replaced bytes, so that another command can undo the patches (ct_inline_undo()). */
#ifndef CT_INLINE_PLAN_H
#define CT_INLINE_PLAN_H

#include "inline_verdicts.h"

#include "visit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CT_INLINE_JUMP_BYTES = 5 };

struct ct_inline_function {
    uint64_t address; /* in the process */
    uint64_t bytes;   /* the size of its symbol */
};

/* Reads the process's memory. Returns false unless all bytes were read. */
typedef bool ct_inline_read(void *context, uint64_t address, void *to, size_t bytes);

struct ct_inline_image {
    ct_inline_read *read;
    void *context;
    uint64_t begin, end;           /* bounds of all segments */
    uint64_t code_begin, code_end; /* bounds of its code segment */
};

/* Replaces `old` by `new`, both of CT_INLINE_JUMP_BYTES. A thread stopped `i` bytes after `address` can be
 * resumed at moved_to[i] with the same effect. moved_to[i] is 0 if no instruction begins at that byte. */
struct ct_inline_patch {
    uint64_t address;
    uint8_t old[8], new[8];
    uint64_t moved_to[CT_INLINE_JUMP_BYTES];
};

/* The area has code, which must be mapped readable and executable. The slots and their list follow, which
 * must be writable. Both parts are whole pages. */
struct ct_inline_plan {
    uint64_t area, code_bytes, bytes;
    uint8_t *contents; /* contents of the area */
    uint32_t count;    /* number of patches, and of rows in the list */
    struct ct_inline_patch *patches;
    struct ct_visit_slot *slots; /* points into the contents */
    uint64_t slots_address;      /* the address of the list of slots in the process */
    uint8_t *verdicts;           /* enum ct_inline_verdict of each function, in the caller's order */
    uint32_t verdict_counts[CT_INLINE_VERDICTS];
};

/* Returns the size of an area for `count` functions. */
uint64_t ct_inline_area_bytes(size_t count);

struct ct_inline_range {
    uint64_t begin, end;
};
/* Finds the nearest free place for an area within a 32-bit distance of all of the image. `taken` has all
 * mappings, sorted by address. Returns 0 if there is no such place. */
uint64_t ct_inline_area_place(const struct ct_inline_image *image, const struct ct_inline_range *taken,
                              size_t taken_count, uint64_t bytes);

/* Makes a plan for an area at `area`, of ct_inline_area_bytes(count). Returns 0 or -ENOMEM. The caller frees
 * the plan in both cases. */
int ct_inline_plan_make(struct ct_inline_plan *plan, const struct ct_inline_image *image,
                        const struct ct_inline_function *functions, size_t count, uint64_t area);
void ct_inline_plan_free(struct ct_inline_plan *plan);

/* Makes the patch that removes the jump to this slot. Its `new` has the function's own bytes. Returns false
 * if the function does not begin with such a jump. */
bool ct_inline_undo(const struct ct_inline_image *image, const struct ct_visit_slot *slot,
                    struct ct_inline_patch *patch);

/* Makes the patch that restores a jump after ct_inline_undo(). Returns false if the function or the slot has
 * other content now. */
bool ct_inline_redo(const struct ct_inline_image *image, const struct ct_visit_slot *slot,
                    struct ct_inline_patch *patch);

/* Returns whether an address is inside a patch. No thread may be there, or return to it, while the patch is
 * written. The first byte of the patch does not count, because an instruction begins there before and after
 * the write. */
static inline bool ct_inline_is_inside(const struct ct_inline_patch *patch, uint64_t at)
{
    return at > patch->address && at < patch->address + CT_INLINE_JUMP_BYTES;
}

#endif
