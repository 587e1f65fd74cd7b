/* Plans slots for functions that have none. The first five bytes of a function are replaced with a jump to an
 * area near the image. The area contains another jump, which goes through a slot. The slot points to a copy
 * of the replaced instructions, followed by a jump back. Changing the slot diverts the function's calls, as
 * with the driver's own slots.
 *
 * This module writes nothing. The caller writes the area first, and then the patches, while every thread is
 * stopped outside the replaced bytes. The area must stay mapped, because a thread may be executing its code.
 * The area also holds the replaced bytes, so that another command can undo the patches (ct_inline_undo()). */
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
    uint64_t bytes;   /* the size of the function's symbol */
};

/* A callback that reads the process's memory. Returns false unless all bytes were read. */
typedef bool ct_inline_read(void *context, uint64_t address, void *to, size_t bytes);

struct ct_inline_image {
    ct_inline_read *read;
    void *context;
    uint64_t begin, end;           /* bounds of the image's segments */
    uint64_t code_begin, code_end; /* bounds of the image's code segment */
};

/* A patch, which replaces `old` with `new`, both CT_INLINE_JUMP_BYTES long. A thread stopped `i` bytes after
 * `address` can be resumed at moved_to[i] with the same effect. moved_to[i] is 0 if no instruction begins at
 * byte `i`. */
struct ct_inline_patch {
    uint64_t address;
    uint8_t old[8], new[8];
    uint64_t moved_to[CT_INLINE_JUMP_BYTES];
};

/* A plan, and the contents of its area. The area begins with code, which must be mapped readable and
 * executable. The slots and the list of slots follow, and must be mapped writable. The code and the slots
 * each occupy whole pages. */
struct ct_inline_plan {
    uint64_t area, code_bytes, bytes;
    uint8_t *contents; /* contents of the area */
    uint32_t count;    /* number of patches, and of entries in the list of slots */
    struct ct_inline_patch *patches;
    struct ct_visit_slot *slots; /* the list of slots, inside `contents` */
    uint64_t slots_address;      /* address of the list of slots in the process */
    uint8_t *verdicts;           /* an enum ct_inline_verdict for each function, in the caller's order */
    uint32_t verdict_counts[CT_INLINE_VERDICTS];
};

/* Returns the size of an area for `count` functions. */
uint64_t ct_inline_area_bytes(size_t count);

struct ct_inline_range {
    uint64_t begin, end;
};
/* Finds the free address range that is nearest to the image and within a 32-bit distance of the whole image.
 * `taken` lists all mappings, sorted by address. Returns the range's address, or 0 if there is none. */
uint64_t ct_inline_area_place(const struct ct_inline_image *image, const struct ct_inline_range *taken,
                              size_t taken_count, uint64_t bytes);

/* Makes a plan for an area of ct_inline_area_bytes(count) bytes at `area`. Returns 0 or -ENOMEM. The caller
 * must free the plan even after an error. */
int ct_inline_plan_make(struct ct_inline_plan *plan, const struct ct_inline_image *image,
                        const struct ct_inline_function *functions, size_t count, uint64_t area);
void ct_inline_plan_free(struct ct_inline_plan *plan);

/* Makes a patch that removes the jump to a slot by restoring the function's original bytes. Returns false if
 * the function does not begin with a jump to this slot. */
bool ct_inline_undo(const struct ct_inline_image *image, const struct ct_visit_slot *slot,
                    struct ct_inline_patch *patch);

/* Makes a patch that restores a jump after ct_inline_undo(). Returns false if the function or the slot has
 * changed since. */
bool ct_inline_redo(const struct ct_inline_image *image, const struct ct_visit_slot *slot,
                    struct ct_inline_patch *patch);

/* Returns whether an address is inside a patch. While the patch is being written, no thread may be at such an
 * address or return to one. A patch's first byte does not count, because an instruction begins there both
 * before and after the write. */
static inline bool ct_inline_is_inside(const struct ct_inline_patch *patch, uint64_t at)
{
    return at > patch->address && at < patch->address + CT_INLINE_JUMP_BYTES;
}

#endif
